"""The contract of a task, strata, data sets; and one folder for each task with everything about it.

`task.py` has layout, generator, strata, logical orders, parents and checks; `solver.py` computes; `profile.py`
describes the wrong commits of a trace; `scene.js` draws on the page, `figures.py` for papers.
"""
