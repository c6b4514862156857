"""Numbers about a model: accuracy by stratum with intervals, paired tests, probe NLL, partial reveal, diagnosis."""
