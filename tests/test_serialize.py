"""What is written as JSON is read back, arrays to the bit; what is none is refused by name."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from robokit.serialize import Format, array_from_json, array_to_json, from_json, layout, to_json


@dataclass(frozen=True)
class Part:
    """A part with all kinds of fields."""

    name: str
    size: tuple[float, float, float]
    corners: np.ndarray
    faces: tuple[tuple[int, ...], ...]
    by_name: Mapping[str, bool]
    kind: Literal["box", "ball"] = "box"
    limit: float | None = math.inf
    inside: Part | None = None


@dataclass(frozen=True)
class Word:
    """A class with a layout of its own."""

    text: str


layout(Word, lambda word: {"reversed": word.text[::-1]}, lambda content: Word(content["reversed"][::-1]))


def there_and_back(kind, value):
    return from_json(kind, json.loads(json.dumps(to_json(value), allow_nan=False)))


numbers = st.floats(allow_nan=False)
# All but surrogates, as st.text() alone; that encodes a million characters first to find out.
texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.builds(
        Part,
        texts,
        st.tuples(numbers, numbers, numbers),
        arrays(float, array_shapes(max_dims=3, min_side=0), elements=st.floats()),
        st.lists(st.lists(st.integers()).map(tuple)).map(tuple),
        st.dictionaries(texts, st.booleans()),
        st.sampled_from(["box", "ball"]),
        st.none() | numbers,
    )
)
def test_dataclasses_come_back_to_the_bit(part):
    again = there_and_back(Part, part)
    assert again.corners.shape == part.corners.shape and again.corners.tobytes() == part.corners.tobytes()
    for name in ("name", "size", "faces", "by_name", "kind", "limit", "inside"):
        assert getattr(again, name) == getattr(part, name)
        assert type(getattr(again, name)) is type(getattr(part, name))


def test_parts_in_parts_layouts_and_fields_that_older_files_do_not_have():
    inner = Part("b", (1.0, 2.0, 3.0), np.zeros((0, 3)), (), {})
    again = there_and_back(Part, Part("a", (1.0, 2.0, 3.0), np.eye(2), ((1, 2),), {"x": True}, inside=inner))
    assert again.inside is not None and again.inside.name == "b" and again.inside.corners.shape == (0, 3)
    content = to_json(inner)
    for name in ("kind", "limit", "inside"):
        del content[name]
    assert from_json(Part, content).limit == math.inf
    assert to_json({"a": Word("abc")}) == {"a": {"reversed": "cba"}}
    assert there_and_back(dict[str, Word], {"a": Word("abc")}) == {"a": Word("abc")}


def test_arrays_of_whole_numbers_are_lists():
    assert to_json(np.array([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert (from_json(np.ndarray, [[1, 2], [3, 4]]) == [[1, 2], [3, 4]]).all()
    with pytest.raises(TypeError):
        array_from_json([[1, 2], [3, 4]])
    x = np.array([0.1, -0.0, math.nan])
    assert array_from_json(array_to_json(x)).tobytes() == x.tobytes()


GOOD: dict[str, Any] = to_json(Part("a", (1.0, 2.0, 3.0), np.eye(2), ((1, 2),), {"x": True}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": 3}, "part.name: expected text, got 3"),
        ({"size": [1.0, 2.0]}, r"part.size: expected a list of 3, got \[1.0, 2.0\]"),
        ({"size": [1.0, True, 2.0]}, r"part.size\[1\]: expected a finite number"),
        ({"faces": [[1, 2.5]]}, r"part.faces\[0\]\[1\]: expected a whole number, got 2.5"),
        ({"faces": {}}, "part.faces: expected a list"),
        ({"by_name": {"x": 1}}, r"part.by_name\['x'\]: expected true or false, got 1"),
        ({"kind": "egg"}, "part.kind: expected one of 'box', 'ball', got 'egg'"),
        ({"corners": {"shape": [2]}}, "part.corners: 'float64' is missing"),
        ({"corners": {"shape": [3], "float64": ""}}, "part.corners: cannot reshape"),
        ({"corners": [[1, 0.5]]}, "part.corners: expected whole numbers in lists"),
        ({"inside": 7}, "part.inside: expected an object, got 7"),
    ],
)
def test_what_is_no_such_thing_is_refused_by_name(change, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        from_json(Part, GOOD | change, "part")


def test_what_has_no_place_in_json_is_refused():
    with pytest.raises(ValueError, match=r"part.name is missing"):
        from_json(Part, {}, "part")
    for value in (object(), math.nan, {1, 2}):
        with pytest.raises(TypeError, match="cannot be written"):
            to_json(value)


def test_older_formats_are_made_newer_and_others_are_told():
    old = Format(3, {1: lambda x: x | {"b": x["a"]}, 2: lambda x: x | {"c": x["b"]}})
    assert old.upgraded({"format": 1, "a": 1}) == {"format": 3, "a": 1, "b": 1, "c": 1}
    assert old.upgraded({"format": 3, "a": 1}) == {"format": 3, "a": 1}
    for other in (0, 4, True, 1.0, 3.0, [], "3", None):
        assert old.upgraded({"format": other}) is None
    with pytest.raises(KeyError):
        old.upgraded({})
