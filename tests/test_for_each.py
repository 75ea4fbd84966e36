"""The stand-in for parametrised tests runs every combination of cases, and lists those that fail."""

import pytest
from for_each import for_each


def test_every_combination_runs_and_all_that_fail_are_listed():
    seen = []

    @for_each("a", [1, 2])
    @for_each("b, c", [(3, 4), (5, 6)])
    def check(a, b, c):
        seen.append((a, b, c))
        assert a * b != 6

    with pytest.raises(AssertionError, match="1 of 4 cases fail\na=2, b=3, c=4: AssertionError"):
        check()
    assert seen == [(1, 3, 4), (1, 5, 6), (2, 3, 4), (2, 5, 6)]


def test_no_case_is_a_failure():
    with pytest.raises(AssertionError, match="no cases"):
        for_each("a", [])(lambda a: None)()


@for_each("k", [1, 2, 3])
def test_fixtures_are_made_once(k, tmp_path):
    (tmp_path / str(k)).touch()
    assert len(list(tmp_path.iterdir())) == k


def test_marks_are_kept_and_a_fixture_that_cases_would_share_is_refused():
    @for_each("a", [1])
    @pytest.mark.slow
    @for_each("b", [2])
    @pytest.mark.parity
    def marked(a, b): ...

    assert {mark.name for mark in marked.pytestmark} == {"slow", "parity"}
    with pytest.raises(TypeError, match="MonkeyPatch"):
        for_each("a", [1])(lambda a, monkeypatch: None)
