"""Draw the theatre on a screen, or print its commits as lines of text."""

import math
import sys
from itertools import zip_longest

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.table import Table
from rich.text import Text

from hardtail.core import terminal
from hardtail.core.tables import probability
from hardtail.show.charts.colours import STEP_RAMP
from hardtail.show.instances import strata_line
from hardtail.show.theatre.keyboard import keyboard
from hardtail.show.theatre.replay import Event, Replay
from hardtail.show.theatre.theatre import Theatre

HIDDEN = "·"
SECONDS_PER_STEP = 0.15
"""While playing."""
SECONDS_PER_SIZE_CHECK = 0.5
"""How often the size of the window is checked while no key is pressed."""
WIDTH_OF_WORDS = 36
"""Columns that the text next to a drawing needs."""
LINES_OF_WORDS = 6
"""Lines that the text below a drawing usually needs."""
MOST_EVENTS, MOST_NAMES = 8, 4
KEYS = "←→ step  ↑↓ ten  home end  space play  f failure  n p instance  q quit"
_SHADES = tuple("#{:02x}{:02x}{:02x}".format(*colour) for colour in STEP_RAMP)
_WRONG, _NOW, _NOW_WRONG = "bold #ffffff on #c62f10", "bold #000000 on #f0c000", "bold underline #ffffff on #c62f10"


def watch(theatre: Theatre) -> None:
    """Show the theatre until the user quits; the terminal is always restored."""
    console = terminal.console()
    with keyboard(sys.stdin.fileno()) as keys, console.screen(hide_cursor=True) as screen:
        drawn, running = None, True
        while running:
            state = theatre.row, theatre.now, theatre.playing, console.size
            if state != drawn:
                console.control(Control.home())
                screen.update(frame(theatre, console.width, console.height))
                drawn = state
            key = keys.next(SECONDS_PER_STEP if theatre.playing else SECONDS_PER_SIZE_CHECK)
            if key is not None:
                running = theatre.press(key)
            elif theatre.playing:
                theatre.tick()


def print_commits(theatre: Theatre, console: Console) -> None:
    """Print every commit of the instance on a line of its own, then the result."""
    console.print(_head(theatre), soft_wrap=True)
    lines = [(event.step, _briefly(theatre, event)) for event in theatre.replay.events]
    widths = [
        max(len(part) for part in column) for column in zip_longest(*(parts for _, parts in lines), fillvalue=Text())
    ]
    for step, parts in lines:
        for part, width in zip(parts[:-1], widths, strict=False):
            part.pad_right(width - len(part))
        console.print(Text.assemble(f"step {step + 1:>3}  ", Text("  ").join(parts)), soft_wrap=True)
    theatre.press("end")
    console.print(_scene(theatre), soft_wrap=True)
    fault = theatre.task.fault(theatre.replay.one, 0, theatre.replay.token_SA[-1])
    console.print(Text("the answer is right", "green") if fault is None else Text(fault, "red"))


# -- drawing ----------------------------------------------------------------------------------------------------------


def frame(theatre: Theatre, width: int, height: int) -> RenderableType:
    """Return the whole screen: the drawing, and next to it or below it what the last step did."""
    drawing, words = _scene(theatre), _words(theatre)
    lines = drawing.split("\n")
    wide = max(line.cell_len for line in lines)
    aside = wide + 2 + WIDTH_OF_WORDS <= width
    high = len(lines) + 2 + (0 if aside else LINES_OF_WORDS)
    if len(lines) > 1 and (wide > width or high > height):
        return Text(f"The window has {width} × {height} characters; this problem needs {wide} × {high}. q quits")
    body: RenderableType
    if aside:
        body = Table.grid(padding=(0, 2, 0, 0))
        body.add_column(min_width=wide, no_wrap=True)
        body.add_row(drawing, words)
    else:
        body = Group(drawing, Text(), words)
    return Group(_head(theatre), body, Text(KEYS, "dim", no_wrap=True, overflow="crop"))


def _head(theatre: Theatre) -> Text:
    where = " · ".join(theatre.trace.source.words)
    solved = ("solved", "bold green") if theatre.replay.exact else ("failed", "bold red")
    instance = f"   instance {theatre.row} of 0–{len(theatre.trace) - 1}: "
    return Text.assemble((where, "bold"), instance, solved, no_wrap=True)


def _scene(theatre: Theatre) -> Text:
    replay, now = theatre.replay, theatre.now
    token_A, since_A, gold_A = replay.token_SA[now], replay.since_SA[now], replay.one.answer(0)
    signs = theatre.task.vocabulary.signs_of(token_A)

    def look(cell: int) -> tuple[str, str]:
        if token_A[cell] == replay.mask_id:
            return HIDDEN, "dim"
        if since_A[cell] < 0:
            return signs[cell], ""
        just = since_A[cell] == now - 1
        if token_A[cell] != gold_A[cell]:
            return signs[cell], _NOW_WRONG if just else _WRONG
        return signs[cell], _NOW if just else _shade(since_A[cell] / max(replay.steps - 1, 1))

    return theatre.task.drawing(replay.one, look)


def _shade(part: float) -> str:
    """Return the colour of a commit: from dark for the first to light for the last."""
    place = min(int(part * len(_SHADES)), len(_SHADES) - 1)
    return f"{'#ffffff' if place < 2 else '#000000'} on {_SHADES[place]}"


def _words(theatre: Theatre) -> Text:
    replay, now = theatre.replay, theatre.now
    playing = ("  playing" if theatre.playing else "", "green")
    text = Text.assemble((f"step {now} of {replay.steps}", "bold"), playing, "\n")
    text.append(strata_line(theatre.task, replay.one, 0))
    events = replay.events_of(now - 1)
    between, within = ("\n\n", "\n") if len(events) == 1 else ("\n", "  ")
    for event in events[:MOST_EVENTS]:
        text.append(between).append(Text(within).join(_parts(theatre, event)))
    if len(events) > MOST_EVENTS:
        text.append(f"\n… and {len(events) - MOST_EVENTS} more", "dim")
    if not events:
        text.append(f"\n\n{int((replay.token_SA[now] == replay.mask_id).sum())} cells are hidden")
    return text


def _briefly(theatre: Theatre, event: Event) -> list[Text]:
    """Describe a commit in a line: cell, token, probability, whether it was right, and what it should have waited for.

    The ranks and the runner-up are left to the screen and to `Trace.to_frame`.
    """
    task, replay = theatre.task, theatre.replay
    if event.token == replay.mask_id:
        return [Text(f"{task.cell_name(event.cell)} hidden again")]
    sign, gold = (task.vocabulary.decode(np.array([token])) for token in (event.token, event.gold))
    parts = [Text(f"{task.cell_name(event.cell)} ← {sign}")]
    parts += [] if math.isnan(event.prob) else [Text(_chance(event.prob))]
    parts.append(Text(f"WRONG: gold {gold}", "bold red") if replay.wrong(event) else Text("right", "green"))
    return parts + _readiness(replay, event, most_names=1)


def _readiness(replay: Replay, event: Event, most_names: int) -> list[Text]:
    """Say whether a commit was ready, and by wrong tokens, or what it waits for; nothing if the task does not know."""
    if replay.one.parents_NAE is None:
        return []
    if (missing := replay.missing(event)) is None:
        return [Text("ready, after a wrong one", "yellow") if replay.misled(event) else Text("ready", "green")]
    more = f" +{len(missing) - most_names}" if len(missing) > most_names else ""
    waits = f": waits for {' '.join(missing[:most_names])}{more}" if missing else ""
    return [Text(f"not ready{waits}", "yellow")]


def _parts(theatre: Theatre, event: Event) -> list[Text]:
    """Describe a commit: cell, token, gold token, whether it was wrong and ready, and the runner-up."""
    task, replay = theatre.task, theatre.replay
    if event.token == replay.mask_id:
        return [Text(f"{task.cell_name(event.cell)} hidden again")]
    sign, gold = (task.vocabulary.decode(np.array([token])) for token in (event.token, event.gold))
    written, rank = f"{task.cell_name(event.cell)} ← {sign}", event.gold_rank + 1
    known = not math.isnan(event.prob)  # canvases of other tools have no probabilities
    look, outcome = _NOW, Text(f"right: gold ranked {rank}" if known else "right", "green")
    if replay.wrong(event):
        look, standing = _NOW_WRONG, f" ranked {rank}, {_chance(event.gold_prob)}" if known else ""
        outcome = Text(f"WRONG: gold {gold}{standing}", "bold red")
    parts = [Text.assemble((written, look), f"  {_chance(event.prob)}" if known else ""), outcome]
    parts += _readiness(replay, event, MOST_NAMES)
    if event.runner_up >= 0 and not math.isnan(event.margin):
        parts.append(Text(f"runner-up {task.cell_name(event.runner_up)}, behind by {event.margin:.2g}", "dim"))
    return parts


def _chance(p: float) -> str:
    return f"p {probability(p)}".replace("\N{NO-BREAK SPACE}", " ")
