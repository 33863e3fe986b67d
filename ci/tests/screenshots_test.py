#!/usr/bin/env python3
"""screenshots refuses pages that overflow, whose script fails or whose tables do not sort.

usage: screenshots_test.py Faults|Pages; Pages exits with 77 where there is no browser.
"""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest

PATH = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, 'screenshots')
LOADER = importlib.machinery.SourceFileLoader('screenshots', PATH)
SPEC = importlib.util.spec_from_loader('screenshots', LOADER)
screenshots = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(screenshots)

TABLE = '<table class="data"><thead><tr><th>n</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>'
SORTING = '''<script>document.querySelectorAll('th').forEach(function(h){h.className='sorts';
h.onclick=function(){h.setAttribute('aria-sort','ascending');};});</script>'''


class Faults(unittest.TestCase):
    def test_told(self):
        good = {'width': 390, 'window': 390, 'faults': [], 'tables': 2, 'sorted': 2}
        self.assertEqual(screenshots.faults(good), [])
        for change in ({'width': 391}, {'faults': ['x']}, {'sorted': 1}):
            self.assertEqual(len(screenshots.faults({**good, **change})), 1, change)

    def test_names(self):
        self.assertEqual(screenshots.picture_name('out/reproduce/index.html'), 'out-reproduce-index')


class Pages(unittest.TestCase):
    def found(self, body):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, 'page.html')
            with open(page, 'w', encoding='utf-8') as file:
                file.write('<!doctype html><html><head></head><body>' + body + '</body></html>')
            return screenshots.faults(screenshots.told(screenshots.browser(), 'narrow', page))

    def test_good(self):
        self.assertEqual(self.found(TABLE + SORTING), [])

    def test_too_wide_with_an_error_and_a_table_that_does_not_sort(self):
        faults = self.found('<p style="width:900px">wide</p>' + TABLE +
                            '<script>no_such_function()</script>')
        self.assertEqual(len(faults), 3, faults)
        self.assertIn('no_such_function', faults[0])
        self.assertRegex(faults[1], 'is 9[0-9]{2} wide in a window of 390')
        self.assertIn('1 of 1 tables do not sort', faults[2])


if __name__ == '__main__':
    if 'Pages' in sys.argv and screenshots.browser() is None:
        print('skipped: no browser, one of', ', '.join(screenshots.BROWSERS))
        sys.exit(77)
    unittest.main()
