"""Reading traces without a model: which commits stand, which are wrong, what was hidden when."""
