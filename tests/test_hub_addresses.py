"""Addresses on the Hub, and answers of its client that are no success; `test_hub` has the rest, with a server."""

from pathlib import Path
from typing import Any

import pytest

from hardtail import HardtailError
from hardtail.core import hub
from hardtail.core.hub import Address


@pytest.mark.parametrize(
    "text", ["me", "hf:me", "me/a/b", "hf:me/..", "me/a..b", "me/a@", "me/a@-b", "me/a@x y", "-me/a", "me/a@b..c"]
)
def test_what_names_no_repository_is_refused(text: str) -> None:
    assert Address.parse("hf:me/a@main") == Address("me/a", "main")
    with pytest.raises(HardtailError, match="names no repository"):
        Address.parse(text)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("\n  \n  the name is odd \nand more"), "hf:me/model@main: the name is odd$"),
        (RuntimeError(""), "hf:me/model@main: RuntimeError$"),
        (HardtailError("as it is"), "^as it is$"),
    ],
)
def test_whatever_the_hubs_client_raises_is_a_sentence(
    error: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any, **how: Any) -> None:
        raise error

    monkeypatch.setattr("huggingface_hub.HfApi.snapshot_download", fail)
    with pytest.raises(HardtailError, match=told):
        hub.fetch(hub.Address("me/model", "main"), ["a"])


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (401, "there is no such repository, or you have no access to it"),
        (403, "there is no such repository, or you have no access to it"),
        (404, "there is no such repository, or you have no access to it"),
        (418, "the Hub answered 418; try again later"),
    ],
)
def test_an_answer_of_the_hub_that_is_no_success(status: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx
    from huggingface_hub.errors import HfHubHTTPError

    def fail(*given: Any, **how: Any) -> None:
        request = httpx.Request("GET", "http://127.0.0.1/")
        raise HfHubHTTPError("no", response=httpx.Response(status, request=request))

    monkeypatch.setattr("huggingface_hub.HfApi.snapshot_download", fail)
    with pytest.raises(HardtailError, match=f"^hf:me/model: {told}"):
        hub.fetch(hub.Address("me/model"), ["a"])


def test_a_data_set_of_the_hub_without_our_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Any]()

    def found(address: hub.Address, files: Any, kind: str) -> hub.Snapshot:
        asked.append((address, list(files), kind))
        return hub.Snapshot(tmp_path, address)

    monkeypatch.setattr(hub, "fetch", found)
    with pytest.raises(HardtailError, match=r"hf:me/data is a data set without data.npz or data.parquet; give one"):
        hub.data_file("hf:me/data", "data", (".npz", ".parquet"))
    (tmp_path / "data.parquet").touch()
    for name in ("hf:me/data", "hf:me/data/data.npz", "hf:me/data/trace.json"):
        assert hub.data_file(name, "data", (".npz", ".parquet")) == tmp_path / "data.parquet"
    (tmp_path / "data.npz").touch()
    assert hub.data_file("hf:me/data", "data", (".npz", ".parquet")) == tmp_path / "data.npz"
    assert set(map(repr, asked)) == {
        repr((hub.Address("me/data"), ["data.npz", "data.parquet", "data.json"], "dataset"))
    }


@pytest.mark.parametrize(
    ("source", "name"),
    [("folder/sums.npz", "sums.npz"), ("hf:me/sums@abc1234def", "me/sums@abc1234"), ("hf:me/sums", "me/sums")],
)
def test_what_records_call_a_file_of_problems(source: str, name: str) -> None:
    assert hub.called(Path(source)) == name
