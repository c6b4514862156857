"""The lm-evaluation-harness, in both directions: our tasks for its models, and our models for its runs.

`hardtail lm-eval` is its command line with both registered. `problems` gives the harness problems and judges answers,
`model` is a model type of the harness, `files` writes the tasks as the YAML files that it reads.
"""
