"""Images from names, arrays and `Images`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from digits import write_digits
from rkcnn.data.images import Images
from rkcnn.error import InputError
from rkcnn.run.settings import name_of
from rkcnn.use.images import label_images, load_images
from use.conftest import Arrays


def test_a_flag_is_true_or_false() -> None:
    with pytest.raises(InputError, match="`skip_bad='no'` given; it is True or False"):
        load_images("mnist-mini", skip_bad="no")  # type: ignore[arg-type]


def test_a_name_gives_the_set_of_that_name(digits: tuple[Images, Images]) -> None:
    training, test = load_images()
    assert (training.name, len(training), len(test)) == ("mnist-mini", 10_000, 2_000)
    assert training.pixels_sha256 == digits[0].pixels_sha256


def test_options_reach_a_users_own_images(tmp_path: Path) -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (200, 4, 4), np.uint8)
    np.savez(tmp_path / "mine.npz", x_train=pixels, y_train=np.arange(200) % 2)
    training, test = load_images(f"npz:{tmp_path / 'mine.npz'}", split=0.3)
    assert (len(training) + len(test), training.own.split) == (200, 0.3)
    assert 40 < len(test) < 80


def test_arrays_become_images_that_check_out(arrays: Arrays, digits: tuple[Images, Images]) -> None:
    training, test = load_images(arrays)
    assert torch.equal(training.pixels, digits[0].pixels[:200])
    assert torch.equal(test.labels, digits[1].labels[:50])
    assert training.classes == tuple("0123456789")
    pixels = arrays[0][0] / 255
    np.testing.assert_allclose((*training.mean, *training.std), (pixels.mean(), pixels.std()), rtol=1e-12)
    assert (test.mean, test.std) == (training.mean, training.std)
    training.check()
    test.check()


def test_the_name_of_arrays_is_made_from_their_content(arrays: Arrays) -> None:
    (x, y), test = arrays
    name = load_images(arrays)[0].name
    assert name.startswith("arrays-")
    assert load_images(((x.copy(), torch.from_numpy(y)), test))[1].name == name
    other = x.copy()
    other[0, 0, 0] += 1
    assert load_images(((other, y), test))[0].name != name


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("second", [False, True])
def test_channels_may_stand_last_or_second(kind: Any, channels: int, second: bool) -> None:
    """Images of 5 x 4 pixels; both libraries, both layouts."""
    last = np.random.default_rng(0).integers(0, 256, (6, 5, 4, channels), dtype=np.uint8)
    given = np.ascontiguousarray(last.transpose(0, 3, 1, 2)) if second else last
    training, _ = load_images(((kind(given), np.arange(6)), (kind(given), np.arange(6))))
    assert np.array_equal(training.pixels.numpy(), last.transpose(0, 3, 1, 2))


def test_where_both_layouts_are_possible_the_library_decides() -> None:
    given = np.arange(2 * 3 * 5 * 3, dtype=np.uint8).reshape(2, 3, 5, 3)
    labels = np.arange(2)
    numpy, _ = load_images(((given, labels), (given, labels)))
    tensor, _ = load_images(((torch.from_numpy(given), labels), (torch.from_numpy(given), labels)))
    assert numpy.pixels.shape == (2, 3, 3, 5)
    assert tensor.pixels.shape == (2, 3, 5, 3)


def test_read_only_and_strided_arrays_are_taken(arrays: Arrays) -> None:
    (x, y), test = arrays
    frozen = x[::2].copy()
    frozen.setflags(write=False)
    first, _ = load_images(((frozen, y[::2]), test))
    second, _ = load_images(((x[::2], y[::2]), test))
    assert first.pixels_sha256 == second.pixels_sha256


def test_a_share_is_set_apart(arrays: Arrays) -> None:
    training, test = load_images(arrays[0], split=0.25)
    counts = torch.bincount(training.labels) + torch.bincount(test.labels)
    assert len(test) == pytest.approx(50, abs=15), "each image's content decides, so the share is met on average"
    assert all(0 < some < count for some, count in zip(test.labels.bincount().tolist(), counts.tolist(), strict=True))
    both = torch.cat([training.pixels, test.pixels]).flatten(1)
    assert sorted(map(tuple, both.tolist())) == sorted(map(tuple, arrays[0][0].reshape(200, -1).tolist()))
    assert torch.equal(load_images(arrays[0], split=0.25)[1].pixels, test.pixels)


def test_arrays_and_a_file_of_them_have_the_same_test_images(arrays: Arrays, tmp_path: Path) -> None:
    x, y = arrays[0]
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y)
    for one, other in zip(
        load_images((x, y), split=0.25), load_images(f"npz:{tmp_path / 'mine.npz'}", split=0.25), strict=True
    ):
        assert torch.equal(one.pixels, other.pixels)
        assert torch.equal(one.labels, other.labels)


def test_labels_may_be_a_column(arrays: Arrays) -> None:
    (x, y), test = arrays
    assert load_images(((x, y[:, None]), test))[0].labels.tolist() == y.tolist()
    assert load_images(((x, y.tolist()), test))[0].labels.tolist() == y.tolist()


def test_labels_of_another_byte_order_are_taken(arrays: Arrays) -> None:
    (x, y), test = arrays
    for order in "<>":
        training, _ = load_images(((x, y.astype(f"{order}i8")), test))
        assert training.labels.tolist() == y.tolist()


def test_one_flat_colour_has_a_deviation_to_divide_by() -> None:
    flat, labels = np.full((4, 5, 5), 7, np.uint8), np.arange(4)
    assert load_images(((flat, labels), (flat, labels)))[0].std == (1.0,)


def test_images_are_named_by_their_parts(digits: tuple[Images, Images], arrays: Arrays) -> None:
    training, test = digits
    assert load_images(digits) == digits
    assert name_of(training, test) == "mnist-mini"
    assert name_of(*training.split(1000)) == "mnist-mini~validation-1000"
    for pair in (training, training), (test, training), (training, load_images(arrays)[1]), training.split(10)[::-1]:
        with pytest.raises(InputError, match="give the training and the test images of one data set"):
            name_of(*pair)


def test_labels_of_a_network_that_is_there(arrays: Arrays) -> None:
    images = label_images(arrays[1], tuple("abcdefghij"))
    assert (len(images), images.classes[0], images.part) == (50, "a", "test")
    with pytest.raises(InputError, match=r"labels up to 9 given; the network has 3 classes"):
        label_images(arrays[1], tuple("abc"))


X, Y = np.zeros((4, 5, 5), np.uint8), np.arange(4)


@pytest.mark.parametrize(
    ("data", "options", "says"),
    [
        ((X, Y), {}, r"arrays \(x, y\): has no test set of its own; state the share to set apart, say `split=0\.2`"),
        ((X, Y), {"split": 0.2}, "class 0 has one image, and a split needs two or more"),
        ((X, Y), {"split": 2.0}, r"`split=2\.0` must be a share between 0 and 1"),
        (((X, Y), (X, Y)), {"keys": "x_train=a"}, "`keys=x_train=a` given with arrays"),
        (((X, Y), (X, Y)), {"split": 0.2}, "have a test set already"),
        (((X, Y), (X, Y)), {"size": 32}, "given with arrays, which are not resized"),
        (X, {"size": 32}, "data of type ndarray given; give a name such as"),
        ("mnist", {"size": 32}, "`size=32` given with mnist; it is for your own images"),
        (X, {}, "data of type ndarray given; give a name such as"),
        (((X, Y), (X[:, :4], Y)), {}, r"1 x 5 x 5 and 1 x 4 x 5 .* must be alike"),
        (((X, Y), (X, Y, Y)), {}, "give two arrays, pixels and labels"),
        (((X, Y), ([1], [2])), {}, r"test images are \(list, list\)"),
        (((X / 255, Y), (X, Y)), {}, r"pixels are torch.float64 .* give uint8 .* \(255 \* x\)\.round\(\)"),
        (((X.reshape(4, 25), Y), (X, Y)), {}, r"of shape \(4, 25\)"),
        (((X[:0], Y[:0]), (X, Y)), {}, r"of shape \(0, 5, 5\)"),
        (((np.zeros((4, 2, 5, 5), np.uint8), Y), (X, Y)), {}, "with 1 or 3 channels"),
        (((X, [[0], [1, 2]]), (X, Y)), {}, "labels are lists of several lengths"),
        (((X, Y[:3]), (X, Y)), {}, "4 images need 4 whole numbers"),
        (((X, Y / 2), (X, Y)), {}, "need 4 whole numbers"),
        (((X, Y - 1), (X, Y)), {}, "labels begin at -1; classes are counted from 0"),
        (((X, Y + 70_000), (X, Y)), {}, "labels go up to 7000.; there may be 65536 classes"),
        (((X, np.array(["a"] * 4)), (X, Y)), {}, "give numbers"),
        (((X, Y.astype([("a", int)])), (X, Y)), {}, "give numbers"),
    ],
)
def test_what_cant_be_used_gets_one_sentence(data: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        load_images(data, **options)
    assert "--" not in str(error.value)


def test_images_are_not_resized_either(digits: tuple[Images, Images]) -> None:
    with pytest.raises(InputError, match="`size=32` given with Images, which are not resized"):
        load_images(digits, size=32)


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="a long double is a double on this system")
def test_numbers_longer_than_torch_has_are_refused() -> None:
    with pytest.raises(InputError, match=r"are an array of float\d+; give numbers of at most 8 bytes"):
        load_images(((X, Y.astype(np.longdouble)), (X, Y)))


def test_a_file_of_the_same_digits_has_the_same_content(arrays: Arrays, tmp_path: Path) -> None:
    training, _ = load_images(write_digits(tmp_path / "mine.npz", 200, 50))
    assert training.pixels_sha256 == load_images(arrays)[0].pixels_sha256
