"""What a study keeps: records, which are the truth, its folder, its book, and Optuna's ledger."""
