"""Certifies functions in tests of pytest, which finds this file by itself:

    def test_my_attention(attest_certify):
        attest_certify(my_attention, like="sdpa")
"""

from __future__ import annotations

import os
import pathlib
import re
import traceback
from typing import Any, Callable, Dict, List

import pytest

from attest._certify import certify
from attest._kernel import users_frames
from attest._library import PACKAGE
from attest._report import Report

_PROVES_NOTHING = ("vacuous", "unsupported")
_OPTIONS = {"tier": (str, "smoke, fast or full"), "seed": (int, "seed of the cases"),
            "cases": (int, "so many generated cases, and no others for what was not met"),
            "shapes": (str, "none: not those of published models"),
            "jobs": (int, "threads of a campaign; 1 in a worker of xdist")}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("attest", "campaigns on attention kernels (fixture attest_certify)")
    for name, (kind, words) in _OPTIONS.items():
        group.addoption(f"--attest-{name}", type=kind, help=f"{words}; a test's own goes before")
    group.addoption("--attest-out", metavar="FOLDER", help="write the certificate of each test here")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "attest: certifies a kernel; given to users of attest_certify")


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    for item in items:
        if "attest_certify" in getattr(item, "fixturenames", ()):
            item.add_marker("attest")


@pytest.fixture
def attest_certify(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """A function with the arguments of attest.certify: the test fails where its kernel is refused.

    It returns the report. Options that the test does not give are those of the command line.
    """

    def certified(fn: Callable[..., Any], **options: Any) -> Report:
        __tracebackhide__ = True
        try:
            report = certify(fn, **{**_given(request.config), **options})
        except Exception as error:
            raise error.with_traceback(_frames_of_the_user(error))
        _note(report, request)
        if report.refusal:
            pytest.fail(report.refusal, pytrace=False)
        if report.verdict in _PROVES_NOTHING:
            pytest.fail(f"nothing is proved\n{report}", pytrace=False)
        request.node.add_report_section("call", "attest", str(report))
        return report

    return certified


def _given(config: pytest.Config) -> Dict[str, Any]:
    given = {name: config.getoption(f"attest_{name}") for name in _OPTIONS}
    if "PYTEST_XDIST_WORKER" in os.environ:
        given["jobs"] = given["jobs"] or 1
    return {name: value for name, value in given.items() if value is not None}


def _frames_of_the_user(error: BaseException) -> Any:
    """Returns the traceback from the user's first line on; None for this package's own errors."""
    raised = list(traceback.walk_tb(error.__traceback__))[-1][0].f_code.co_filename
    return None if raised.startswith(str(PACKAGE)) else users_frames(error)


def _note(report: Report, request: pytest.FixtureRequest) -> None:
    """Leaves the verdict with the test, for JUnit, and the certificate in a file."""
    node = request.node
    node.user_properties.append(("attest", f"{report.kernel}: {report.verdict}"))
    folder = request.config.getoption("attest_out")
    if folder:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w.-]+", "_", f"{node.nodeid}-{report.kernel}")
        report.save(pathlib.Path(folder) / f"{name}.json")
