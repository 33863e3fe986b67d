"""Run steps on a device: each has its own limit, and its results are kept whatever comes after."""
import collections
import concurrent.futures
import threading
import time
import traceback

import device_tools as tools
from on_device import records

OUTCOMES = ('passed', 'failed', 'refused', 'no time')


def outcome_of(rows):
    """Tells the outcome of a task, and why."""
    for outcome, why in (('failed', records.failure), ('refused', records.refusal)):
        for text in filter(None, map(why, rows)):
            return outcome, text
    return 'passed', ''


class Run:
    """Keeps the file of records, the kernels, and the seconds that all steps may take."""

    def __init__(self, path, kernels, certificates, seconds=None):
        self.path, self.kernels, self.certificates = path, kernels, certificates
        self.seconds, self.begin, self.lock = seconds, time.monotonic(), threading.Lock()

    def say(self, text):
        now = time.monotonic() - self.begin
        left = '' if self.seconds is None else f', {max(self.seconds - now, 0):3.0f} s left'
        print(f'[{now:3.0f} s{left}] {text}', flush=True)

    def found(self, kind):
        with self.lock:
            return [row for row in records.last_run(self.path) if row['kind'] == kind]

    def task(self, step, name, answers):
        """Does one task, whose records are on the disk when this returns its outcome."""
        start = time.monotonic()
        try:
            rows = [{'kind': kind, **row} for kind, found in answers(self.found).items()
                    for row in found]
        except tools.OutOfTime:
            return 'no time'
        except Exception:  # a mistake in one step must not cost those after it
            rows = [{'kind': 'crash', 'failed': tools.tail(traceback.format_exc(), 3)}]
        if tools.stopped:
            return 'no time'
        (outcome, why), seconds = outcome_of(rows), time.monotonic() - start
        with self.lock:
            records.append(self.path, [*rows, {
                'kind': 'task', 'step': step.name, 'task': name, 'outcome': outcome,
                'seconds': round(seconds, 3)}])
        self.say(f'{step.name} {name}: {outcome}, {seconds:.1f} s' +
                 (f'; {tools.tail(why, 3)}' if why else ''))
        return outcome

    def step(self, step, until, done):
        """Does the tasks that are not done yet; counts their outcomes."""
        tasks = [one for one in step.tasks(self.kernels, self.certificates)
                 if (step.name, one[0]) not in done]
        left = '' if until is None else f', at most {max(until - time.monotonic(), 0):.0f} s'
        self.say(f'== {step.name}: {step.title}; {len(tasks)} to do{left}')
        tools.until = until
        with concurrent.futures.ThreadPoolExecutor(step.at_once) as pool:
            return collections.Counter(pool.map(lambda one: self.task(step, *one), tasks))

    def perform(self, steps, done=(), each=None):
        """Does steps in their order and prints a table; true where nothing failed.

        Each ends when its share of the seconds is over. A step that ends early leaves the rest to
        those after it.
        """
        whole, passed, failed, lines = sum(step.seconds for step in steps), 0, 0, []
        for step in steps:
            passed += step.seconds
            until = None if self.seconds is None else (
                self.begin + self.seconds * passed / whole)
            tools.limit = step.each if self.seconds is not None else each
            start = time.monotonic()
            counts = self.step(step, until, done)
            lines.append(f'{step.name:<11}' + ''.join(f'{counts[one]:>9}' for one in OUTCOMES) +
                         f'{time.monotonic() - start:>9.0f}')
            failed += counts['failed']
        print('\n'.join([f"{'step':<11}" + ''.join(f'{one:>9}' for one in (*OUTCOMES, 'seconds')),
                         *lines]))
        return failed == 0
