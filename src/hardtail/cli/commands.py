"""The commands by their names, each with its own parser."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial, wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, overload

import tyro

from hardtail.cli.common import OwnFolder
from hardtail.cli.options import refuse_outside
from hardtail.cli.parsing import Call, parsed
from hardtail.core.errors import HardtailError
from hardtail.core.terminal import guard

F = TypeVar("F", bound=Callable[..., None])


class App:
    """The commands. Once one runs, the text that it prints is cleaned on its way to the terminal."""

    def __init__(self) -> None:
        self._commands: dict[str, Callable[..., Call]] = {}

    def cli(self, args: list[str], *, prog: str, description: str) -> None:
        """Run the command that the words begin with; the list of all has the first sentence about each."""
        name, *rest = args
        if name in self._commands:  # alone, so that errors point to its own help
            parsed(self._commands[name], rest, f"{prog} {name}")()
            return
        if name == "decode":
            raise HardtailError(
                "`hardtail eval MODEL --traces DIR` decodes and keeps the traces, `hardtail view MODEL` shows one"
            )
        if close := get_close_matches(name, self._commands, n=1):
            raise HardtailError(f"there is no command {name!r}; did you mean {close[0]!r}?")
        if name != "--help":
            raise HardtailError(f"there is no command {name!r}; `{prog} --help` lists them")
        parser = tyro.extras.SubcommandApp()
        for name, command in self._commands.items():
            parser.command(name=name)(_first_sentence(command))
        parser.cli(args=args, prog=prog, description=description)

    @overload
    def command(self, function: F) -> F: ...

    @overload
    def command(self, *, name: str | None = None, guarded: bool = True, imports: bool = False) -> Callable[[F], F]: ...

    def command(
        self, function: F | None = None, *, name: str | None = None, guarded: bool = True, imports: bool = False
    ) -> Any:
        """Register a command; one that is not `guarded` calls `guard` itself, after it has parsed its words.

        One that `imports` takes names of a user's own objects, so its help lists `--path`.
        """
        if function is None:
            return partial(self.command, name=name, guarded=guarded, imports=imports)

        @wraps(function)
        def given(*words: Any, **flags: Any) -> Call:
            if imports:
                del flags["path"]  # `main` has taken its folders before anything was parsed

            def run() -> None:
                guard(colours=not guarded)
                refuse_outside(function, flags)
                function(*words, **flags)

            return run

        if imports:
            own = signature(function)
            path = Parameter("path", Parameter.KEYWORD_ONLY, default=None, annotation=OwnFolder)
            del given.__wrapped__  # or the parser reads the types there
            given.__annotations__ = function.__annotations__ | {"path": OwnFolder}
            given.__signature__ = own.replace(parameters=[*own.parameters.values(), path])  # type: ignore[attr-defined]
        self._commands[name or function.__name__] = given
        return function


def _first_sentence(command: Callable[..., Call]) -> Callable[[], None]:
    def listed() -> None: ...

    sentence = (command.__doc__ or "").partition("\n\n")[0].partition(". ")[0]
    listed.__doc__ = f"{sentence.removesuffix('.')}."
    return listed


app = App()
