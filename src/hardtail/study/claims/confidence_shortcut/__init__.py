"""The paper that hardtail reproduces, about the shortcut of confidence: its tables and the statements of its text."""

from hardtail.study.claims.source import Paper

SOURCE = Paper(
    __name__,
    tables=(
        "addition",
        "addition_random_order",
        "maze",
        "listops",
        "countdown",
        "countdown_step_order",
        "sudoku",
        "sudoku_solver_orders",
    ),
    statements=("addition", "maze", "table_3", "discussion", "data"),
)
