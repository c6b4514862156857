"""What people look at: tables, charts, figures, the page, the theatre in a terminal.

A *stage* is one task with everything that was decoded of it; a *theatre*, on the page or in a terminal, is where its
decodes are watched; a *replay* is one decode of one problem, step by step; a *scene* is a task's drawing of a problem.
"""
