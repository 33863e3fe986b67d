"""Shows the outcome of a campaign to people."""

from __future__ import annotations

import dataclasses
import html
import json
import os
from typing import Any, Dict, List, Union


@dataclasses.dataclass(frozen=True)
class Report:
    """Holds what a campaign found.

    `certificate`  as `attest certify --out` writes it: certify/schemas/certificate.schema.json
    """

    certificate: Dict[str, Any]

    @property
    def kernel(self) -> str:
        """The name of the function."""
        return self._kernel["kernel"]

    @property
    def verdict(self) -> str:
        """"certified", "incomplete", "violated", or another word of the certificate."""
        return self._kernel["verdict"]

    @property
    def findings(self) -> List[Dict[str, Any]]:
        """The mistakes, each an object of the certificate."""
        return self._kernel["findings"]

    @property
    def refusal(self) -> str:
        """The first finding, its smallest case and how to see it again; "" without one."""
        if not self.findings:
            return ""
        return f"{self.kernel} is refused\n{finding_text(self.findings[0])}"

    def raise_if_refused(self) -> None:
        """Raises AssertionError with `refusal`, unless that is empty."""
        __tracebackhide__ = True
        if self.refusal:
            raise AssertionError(self.refusal)

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the certificate, for `attest report`."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(self.certificate, indent=2, sort_keys=True) + "\n")

    def __str__(self) -> str:
        kernel, claims = self._kernel, self._kernel["description"]
        worst = ", ".join(f"{name} {of['error_over_bound']:.2g}" for name, of in kernel["worst"].items()
                          if of["error_over_bound"] is not None)
        ran = self.verdict != "unsupported" or kernel["checks"]["made"] > 0
        lines = [f"{self.kernel}  {self.verdict.upper().replace('_', ' ') if ran else 'NO CHECK RAN'}",
                 f"claims {', '.join(claims['dtypes'] + claims['directions'] + claims['features'])}",
                 f"{kernel['checks']['passed']:,} checks passed on {kernel['cases']:,} cases; worst error "
                 f"over bound: {worst or 'none'}"]
        lines += [f"not covered: {gap}" for gap in kernel["incomplete"]]
        lines += [f"refused {one['checks']:,} times: {one['message']}"
                  for one in kernel["coverage"]["refused"]]
        lines += [finding_text(finding) for finding in self.findings]
        if self.certificate["interrupted"]:
            lines.append("ended early: the certificate is partial")
        return "\n".join(lines + [f"not seen in process: {one}" for one in kernel.get("not_seen", [])])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    @property
    def _kernel(self) -> Dict[str, Any]:
        return self.certificate["kernels"][0]


def finding_text(finding: Dict[str, Any]) -> str:
    """Returns what a finding says: the law, the smallest case, its error and bound, and the replay."""
    lines = [f"{finding['law']}: {finding['message']}"]
    if finding["bound_term"]:
        lines.append(f"largest term of the bound of {finding['bound_term']}")
    lines += [f"equals {one['equals']}" for one in finding["signatures"]]
    lines += [f"seen: it {one['deed']}" for one in finding["suspicions"]]
    return "\n".join([*lines, *finding["hints"], f"problem {problem_in(finding['shrunk'])}", finding["reproduce"]])


def problem_in(case: Dict[str, Any]) -> str:
    """Returns the problem of a finding's case, as `replay` takes it."""
    return case["problem"].split(";")[-1]
