"""An arm of seven hinges that the tests of a file share."""

import pytest
from ik_arms import seven


@pytest.fixture(scope="module")
def seven_arm():
    return seven()
