"""Several machines search one study: launches are claimed and recorded in a database that all of them reach."""
