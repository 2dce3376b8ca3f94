"""One file over HTTP(S), to a temporary name, continued where it stopped; others check what it holds."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from pathlib import Path

from rkcnn.data.progress import Progress
from rkcnn.data.sources import REMEDY
from rkcnn.disk import writing_to
from rkcnn.error import InputError

ATTEMPTS = 4  # in a row without a byte gained before a source is given up
PAUSE = 0.25  # seconds before the next attempt, doubled after each that gained nothing


def download(url: str, part: Path, limit: int, timeout: float, progress: Progress) -> None:
    """Appends to `part` until all of `url` is there; InputError if it can't be had or passes the limit."""
    try:
        _download(url, part, limit, timeout, progress)
    finally:
        progress.stop()


def _download(url: str, part: Path, limit: int, timeout: float, progress: Progress) -> None:
    failures = 0
    while True:
        before = _size(part)
        try:
            _transfer(url, part, limit, timeout, progress)
            return
        except InputError:
            raise
        except urllib.error.HTTPError as error:
            if error.code == 416 and before:  # nothing after what we have: it is whole, or not of this file
                return
            if error.code < 500 and error.code != 429:
                raise InputError(f"{url}: the server answers {error.code} {_plain(error.reason)}") from None
            reason = f"the server answers {error.code} {_plain(error.reason)}"
        except urllib.error.URLError as error:
            raise InputError(f"{url}: no connection ({_plain(error.reason)})") from None
        except TimeoutError:
            reason = f"no byte for {timeout:g} seconds"
        except ValueError as error:  # an address, here or in a redirection, that is none
            raise InputError(f"{url}: the answer can't be followed ({_plain(error)})") from None
        except (http.client.HTTPException, OSError) as error:
            reason = f"the connection broke ({type(error).__name__}: {_plain(error)})"
        failures = 0 if _size(part) > before else failures + 1
        if failures == ATTEMPTS:
            raise InputError(f"{url}: {reason}, {ATTEMPTS} times in a row after {_size(part)} bytes")
        time.sleep(min(PAUSE * 2**failures, timeout))


def _transfer(url: str, part: Path, limit: int, timeout: float, progress: Progress) -> None:
    have = _size(part)
    headers = {"User-Agent": "rkcnn", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout) as response:
        continued = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if response.status == 206 and not continued:
            part.unlink(missing_ok=True)  # another stretch than was asked for: begin again
            raise http.client.HTTPException("the server sent another stretch of the file")
        done = have if continued else 0
        length = response.headers.get("Content-Length", "")
        total = done + int(length) if length.isascii() and length.isdigit() else None
        if total is not None and total > limit:
            raise InputError(f"{url}: announces {total} bytes, and the set has no file over {limit}")
        progress.start(done)
        with writing_to(part, REMEDY):
            file = part.open("ab" if continued else "wb", buffering=0)
        with file:
            while chunk := response.read1(1 << 18):
                with writing_to(part, REMEDY):
                    file.write(chunk)
                done += len(chunk)
                if done > limit:
                    part.unlink()
                    raise InputError(f"{url}: goes on after {limit} bytes, and the set has no file that long")
                progress.advance(url.rpartition("/")[2], done, total)
        if total is not None and done < total:
            raise http.client.HTTPException(f"{done} of {total} bytes announced")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _plain(text: object) -> str:
    """What a server said, safe to print: short, and no control character reaches the terminal."""
    return ascii(str(text))[1:-1][:200]
