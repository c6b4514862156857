"""Claims that need no run: identities of addition, sizes of models and data, and facts about drawn instances."""

from msgspec import Struct

from hardtail.study.claims.base import Cell, Check, Claim
from hardtail.study.claims.confidence_shortcut import SOURCE
from hardtail.study.claims.facts import Counted, Known
from hardtail.study.claims.plain import Computed, shown
from hardtail.study.claims.rules import Level
from hardtail.study.claims.source import Checks
from hardtail.tasks.named import make_task

DIGITS, MASKED_ROWS = 32, 8


class Model(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the appendix's tables."""

    layers: int
    width: int
    vocabulary: int
    tokens: int
    parameters: float
    digit: float
    """The unit of the last printed digit."""
    steps: int
    training: int
    epochs: float
    cells: float
    """Answer cells that are ever hidden."""
    stages: int
    per_stage: float

    def counted(self, ratio: int) -> int:
        """Parameters with biases, eight more positions than tokens and the tied output layer counted once."""
        attention = 4 * self.width * self.width + 4 * self.width
        mlp = 2 * ratio * self.width * self.width + (ratio + 1) * self.width
        layer = attention + mlp + 4 * self.width
        return (self.vocabulary + self.tokens + MASKED_ROWS + 2) * self.width + self.layers * layer


class Text(Struct, frozen=True, forbid_unknown_fields=True):
    """What the text prints about data and models; `text/data.toml` explains each number."""

    batch: int
    models: dict[str, Model]
    countdown_test: float
    countdown_train: float
    blanks: float


TEXT = SOURCE.text("data", Text)


def by_hand(a: int, b: int, digits: int) -> int:
    """The sum as a person adds it: c_i = (a_i + b_i + r_i) mod 10, r_{i+1} = [a_i + b_i + r_i ≥ 10]."""
    total, carry = 0, 0
    for place in range(digits):
        column = a // 10**place % 10 + b // 10**place % 10 + carry
        total, carry = total + column % 10 * 10**place, int(column >= 10)
    return total + carry * 10**digits


def long_run(length: int, positions: int = DIGITS, chance: float = 0.1) -> float:
    """P(a run of at least `length` among this many positions, each of which is in a run with this chance)."""
    seen = [0.0] * (length + 1)
    seen[length] = chance**length
    for _ in range(positions - length):
        seen.append(seen[-1] + (1 - seen[-length - 1]) * (1 - chance) * chance**length)
    return seen[positions]


def _near(what: str, ours: float, printed: float, away: float) -> Computed:
    return Computed(what, ours, printed - away, printed + away, f"~{shown(printed)}")


def _training(task: str) -> int:
    return sum(part.n for part in make_task(task).splits()["train"])


def claims() -> list[Claim]:
    nines = sum(a + b == 9 for a in range(10) for b in range(10)) / 100
    right = [by_hand(a, b, 2) == a + b for a in range(100) for b in range(100)]
    models = TEXT.models.items()
    kept = {part.stratum: part.n for part in make_task("countdown").splits()["train"]}
    low = next(n for stratum, n in kept.items() if stratum.endswith("m=1-3"))
    checks: Checks = {
        "data.carry": [Computed("sums of two digits that eq. 1 gives", sum(right) / len(right), 1.0, 1.0, "all")],
        "data.lookahead": [
            Computed("share of digit pairs that sum to nine", nines, 0.1, 0.1, "0.1"),
            Computed("P(eight digits below all propagate)", nines**8, 0.99e-8, 1.01e-8, "1e-8"),
        ],
        "data.union-bound": [
            Computed("33e-8", (DIGITS + 1) * nines**8, 0.0, 1e-6, "below 1e-6"),
            Computed("P(some digit needs more than eight), exactly", long_run(8), 0.0, 33e-8, "at most 33e-8"),
        ],
        "data.long-chains": [Computed("P(a chain of 28 and more)", long_run(28), 0.0, 1e-3, "well under 1 %")],
        "data.starving": [Computed("least weight among 17 hidden cells, α = 1", 17 / 18, 0.0, 0.8, "starved")],
        "data.parameters": [
            _near(f"{task}, MLP three times as wide", model.counted(3), model.parameters, model.digit / 2)
            for task, model in models
        ],
        "data.parameters.wider": [
            _near(f"{task}, MLP four times as wide", model.counted(4), model.parameters, model.digit / 2)
            for task, model in models
        ],
        "data.epochs": [
            _near(f"{task}, epochs", model.steps * TEXT.batch / model.training, model.epochs, 0.1 * model.epochs)
            for task, model in models
        ],
        "data.stage-size": [
            _near(f"{task}, hidden cells for each stage", model.cells / model.stages, model.per_stage, _half(model))
            for task, model in models
        ],
        "data.training.countdown": [
            _near("puzzles", _training("countdown"), TEXT.models["countdown"].training, 40_000)
        ],
        "data.training.sudoku": [_near("puzzles", _training("sudoku"), TEXT.models["sudoku"].training, 30_000)],
        "data.countdown.test": [
            _share("countdown.low.raw", "test puzzles with up to 3 solutions", TEXT.countdown_test)
        ],
        "data.countdown.distinct": [
            _share("countdown.low.distinct", "test puzzles with up to 3 distinct solutions", TEXT.countdown_test)
        ],
        "data.countdown.train": [_near("of the training set", low / sum(kept.values()), TEXT.countdown_train, 0.02)],
        "data.sudoku.blanks": [
            Level(Cell(Counted("sudoku.blanks", "blanks of a test puzzle, mean"), TEXT.blanks), 2.0)
        ],
    }
    return SOURCE.stated("data", checks)


def _half(model: Model) -> float:
    return 0.5 if model.per_stage < 5 else 2.0


def _share(fact: str, name: str, printed: float) -> Check:
    return Level(Cell(Known(fact, name), printed), 0.03)
