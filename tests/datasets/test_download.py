from __future__ import annotations

import hashlib
import io
import socket
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

from sharpen.datasets import list_datasets, registry
from sharpen.datasets.download import (
    RemoteFile,
    _Encrypted,
    cache_folder,
    data_folders,
    download,
    find_file,
    find_folder,
    get_file,
    read_verified,
)
from sharpen.errors import InputError

BODY = bytes(range(256)) * 1000  # more than one chunk
SHA256 = hashlib.sha256(BODY).hexdigest()


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_download_writes_the_file_and_nothing_else(server, cache):
    server.content["/a.npz"] = BODY
    path = download(RemoteFile("deep/down/a.npz", f"{server.url}/a.npz", SHA256), cache)
    assert path == cache / "deep/down/a.npz"
    assert path.read_bytes() == BODY
    assert files_below(cache) == ["deep/down/a.npz"]


def test_progress_goes_to_stderr(server, cache, capsys):
    server.content["/a.npz"] = BODY
    download(RemoteFile("a.npz", f"{server.url}/a.npz"), cache)
    out, err = capsys.readouterr()
    assert out == ""
    assert "a.npz" in err


@pytest.mark.parametrize("known", [True, False], ids=["checksum known", "checksum unknown"])
def test_connection_cut_halfway(server, cache, known):
    server.content["/a.npz"] = BODY
    server.cut.add("/a.npz")
    file = RemoteFile("a.npz", f"{server.url}/a.npz", SHA256 if known else None)
    with pytest.raises(InputError, match=f"ended after {len(BODY) // 2} of {len(BODY)} bytes"):
        download(file, cache)
    assert files_below(cache) == []
    server.cut.clear()  # the next attempt starts afresh
    assert get_file(file).read_bytes() == BODY


def test_wrong_checksum(server, cache):
    server.content["/a.npz"] = BODY + b"!"
    with pytest.raises(InputError, match=f"expected {SHA256}"):
        download(RemoteFile("a.npz", f"{server.url}/a.npz", SHA256), cache)
    assert files_below(cache) == []


def test_not_found_says_what_to_put_where(server, cache):
    with pytest.raises(InputError) as caught:
        download(RemoteFile("x/a.npz", f"{server.url}/a.npz"), cache)
    message = str(caught.value)
    assert f"{server.url}/a.npz" in message
    assert "404" in message
    assert str(cache / "x/a.npz") in message
    assert "SHARPEN_DATA" in message
    assert files_below(cache) == []


def test_no_server(cache):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(InputError, match=r"could not be downloaded \(.*refused\)"):
        download(RemoteFile("a.npz", f"http://127.0.0.1:{port}/a.npz"), cache)
    assert files_below(cache) == []


def test_cache_that_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    with pytest.raises(InputError, match="XDG_CACHE_HOME"):
        download(RemoteFile("a.npz", "http://127.0.0.1:9/a.npz"), blocked / "sharpen")


def test_remains_of_a_killed_download_do_not_count(server, cache):
    server.content["/a.npz"] = BODY
    cache.mkdir(parents=True)
    (cache / ".a.npz.k3j.part").write_bytes(BODY[:100])
    file = RemoteFile("a.npz", f"{server.url}/a.npz", SHA256)
    assert find_file(file) is None
    assert get_file(file).read_bytes() == BODY


def test_named_folder_comes_first_then_cache_then_download(server, cache, tmp_path):
    root = tmp_path / "given"
    root.mkdir()
    file = RemoteFile("a.npz", f"{server.url}/a.npz")
    server.content["/a.npz"] = b"web"
    assert get_file(file, root) == cache / "a.npz"
    assert files_below(root) == []  # never into the folder that the user gave
    assert get_file(file, root) == cache / "a.npz"
    assert server.asked == ["/a.npz"]  # the second time from the cache
    (root / "a.npz").write_bytes(b"mine")
    assert get_file(file, root).read_bytes() == b"mine"


def test_folder_of_the_environment(tmp_path, monkeypatch, cache):
    monkeypatch.delenv("SHARPEN_DATA", raising=False)
    assert data_folders() == (cache,)
    monkeypatch.setenv("SHARPEN_DATA", str(tmp_path))
    assert data_folders() == (tmp_path, cache)
    other = tmp_path / "other"
    other.mkdir()
    assert data_folders(other) == (other, cache)  # the argument wins


def test_folder_of_the_environment_that_does_not_exist(tmp_path, monkeypatch):
    monkeypatch.setenv("SHARPEN_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"nowhere \(SHARPEN_DATA\) does not exist"):
        data_folders()


@pytest.mark.parametrize(
    ("platform", "expected"),
    [("linux", ".cache/sharpen"), ("darwin", "Library/Caches/sharpen"), ("win32", "AppData/Local/sharpen")],
)
def test_cache_folder_of_each_platform(platform, expected, monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_folder() == tmp_path / expected


def test_find_folder_wants_all_files(tmp_path):
    files = [RemoteFile("a", "http://127.0.0.1:9/a"), RemoteFile("b", "http://127.0.0.1:9/b")]
    (tmp_path / "a").write_bytes(b"")
    assert find_folder(files, tmp_path) is None
    (tmp_path / "b").write_bytes(b"")
    assert find_folder(files, tmp_path) == tmp_path


def test_read_verified(tmp_path):
    (tmp_path / "a").write_bytes(BODY)
    assert read_verified(RemoteFile("a", "http://127.0.0.1:9/a", SHA256), tmp_path) == BODY
    (tmp_path / "a").write_bytes(BODY[:-1])
    with pytest.raises(InputError, match="is not the file that"):
        read_verified(RemoteFile("a", "http://127.0.0.1:9/a", SHA256), tmp_path)


def archive_of(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, BODY)
    return out.getvalue()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"  <!DOCTYPE html><title>Please sign in</title>", "a web page: does this network ask for a login"),
        (b"<html>", "a web page"),
        (b"not an archive at all", "not an archive"),
        (archive_of("adj_data.npy"), "an archive without labels.npy"),
        (archive_of("adj_data.npy", "labels.npy")[:-40], "not an archive"),
        (archive_of("adj_data.npy", "labels.npy").replace(bytes(range(250)), bytes(250), 1), "is damaged"),
    ],
)
def test_what_is_not_the_file_does_not_get_into_the_cache(server, cache, body, message):
    server.content["/a.npz"] = body
    file = RemoteFile("a.npz", f"{server.url}/a.npz", holds=("adj_data.npy", "labels.npy"))
    with pytest.raises(InputError, match=message):
        download(file, cache)
    assert files_below(cache) == []
    server.content["/a.npz"] = archive_of("adj_data.npy", "labels.npy", "more.npy")
    assert download(file, cache).is_file()


def test_every_dataset_has_a_checksum_or_says_what_it_holds():
    for info in list_datasets():
        for file in registry._source(info.name).files(info.name):
            assert file.sha256 or file.holds, file.path
            assert file.url.startswith("https://")
            assert file.most <= 2 * 2**30


def test_no_more_is_downloaded_than_a_file_can_have(server, cache):
    server.content["/a.npz"] = BODY
    with pytest.raises(InputError, match=f"announces {len(BODY)} bytes, but the file has at most 1000"):
        download(RemoteFile("a.npz", f"{server.url}/a.npz", most=1000), cache)
    server.unannounced.add("/a.npz")
    with pytest.raises(InputError, match="more than the 1000 bytes"):
        download(RemoteFile("a.npz", f"{server.url}/a.npz", most=1000), cache)
    assert files_below(cache) == []


@pytest.mark.parametrize("length", ["abc", "-5", "9" * 400, "1e9"])
def test_a_length_that_is_no_number_is_a_sentence(server, cache, length):
    server.content["/a.npz"] = BODY
    server.lengths["/a.npz"] = length
    with pytest.raises(InputError, match="could not be downloaded"):
        download(RemoteFile("a.npz", f"{server.url}/a.npz"), cache)
    assert files_below(cache) == []


@pytest.mark.parametrize("target", ["http://example.org/a", "ftp://example.org/a", "file:///etc/passwd"])
def test_a_redirection_to_a_connection_without_encryption_is_not_followed(target):
    asked = urllib.request.Request("https://example.org/a")
    with pytest.raises(ConnectionError, match="is not encrypted"):
        _Encrypted().redirect_request(asked, None, 302, "", {}, target)
    again = _Encrypted().redirect_request(asked, None, 302, "", {}, "https://other.org/a")
    assert again.full_url == "https://other.org/a"


@pytest.mark.parametrize("url", ["not an address", "http://[::1", "http://127.0.0.1:99999/a", "file:///etc/hostname"])
def test_an_address_that_is_none_is_a_sentence(cache, url):
    with pytest.raises(InputError, match="could not be downloaded"):
        download(RemoteFile("a.npz", url, SHA256), cache)
    assert files_below(cache) == []
