"""One launch: started, measured at every level, ended, and what came of it."""
