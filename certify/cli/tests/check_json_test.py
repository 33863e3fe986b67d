#!/usr/bin/env python3
"""Output of `attest check --json` is what certify/schemas/check.schema.json says, and the schema is not
silent about any of it. usage: check_json_test.py ATTEST SCHEMA"""
import copy
import json
import subprocess
import sys
import unittest

ATTEST, SCHEMA = sys.argv[1], json.load(open(sys.argv[2], encoding='utf-8'))
NAMES = {'object': dict, 'array': list, 'string': str, 'boolean': bool, 'integer': int,
         'number': (int, float), 'null': type(None)}


def faults(value, schema, path='$'):
    """Lists what is wrong with a value: types, constants, fields missing or not described."""
    found = []
    if 'const' in schema and value != schema['const']:
        found.append(f'{path} is {value!r}')
    if 'enum' in schema and value not in schema['enum']:
        found.append(f'{path} is {value!r}')
    kinds = schema.get('type', [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    flag = isinstance(value, bool)
    if kinds and not any(isinstance(value, NAMES[kind]) and (not flag or kind == 'boolean')
                         for kind in kinds):
        return found + [f'{path} is no {kinds}']
    if isinstance(value, list):
        for number, item in enumerate(value):
            found += faults(item, schema['items'], f'{path}[{number}]')
    if isinstance(value, dict):
        found += [f'{path} lacks {key}' for key in schema['required'] if key not in value]
        for key, field in value.items():
            if key in schema['properties']:
                found += faults(field, schema['properties'][key], f'{path}.{key}')
            else:
                found.append(f'{path}.{key} is not described')
    return found


def check(*arguments, command='check'):
    done = subprocess.run([ATTEST, command, '--json', *arguments], stdout=subprocess.PIPE,
                          text=True, timeout=250, check=False)
    return json.loads(done.stdout), done.returncode


class CheckJson(unittest.TestCase):
    def judged(self, verdict, *arguments, command='check'):
        printed, code = check(*arguments, command=command)
        self.assertEqual(faults(printed, SCHEMA), [])
        self.assertEqual(printed['exit_code'], code)
        self.assertEqual(printed['verdict'], verdict)
        return printed

    def test_kernels(self):
        found = self.judged('passed', '--kernel', 'cpu/flash2', '--problem',
                            'sq=9,sk=13,d=4,mask=block_4_60_1')
        self.assertGreater(len(found['laws']), 5)
        self.judged('violated', '--kernel', 'broken/nan_output', '--problem', 'sq=1,sk=2,d=1')
        self.judged('unsupported', '--kernel', 'sparse/block_flash2', '--problem',
                    'sq=4,d=1,mask=random_50_1', '--law', 'reference_forward')
        self.judged('vacuous', '--kernel', 'cpu/flash2', '--problem',
                    'sq=4,d=1,mask=block_4_0_1', '--law', 'reference_forward')

    def test_sparse_inputs(self):
        inputs = ('--inputs', 'csr:density=0.5', '--problem', 'sq=2,d=2', '--kernel')
        self.judged('passed', *inputs, 'sparse_inputs/expm1', command='check-sparse')
        self.judged('violated', *inputs, 'broken/sparse_unshifted', command='check-sparse')

    def test_what_the_schema_refuses(self):
        printed, _ = check('--kernel', 'cpu/flash2', '--problem', 'sq=2,d=1', '--law',
                           'reference_forward')
        for spoil in (lambda o: o.pop('verdict'), lambda o: o.update(more=1),
                      lambda o: o.update(verdict='fine'), lambda o: o.update(exit_code='0'),
                      lambda o: o['laws'][0].pop('outputs'),
                      lambda o: o['laws'][0]['outputs'][0].update(elements=True),
                      lambda o: o['case'].update(seed=None)):
            spoilt = copy.deepcopy(printed)
            spoil(spoilt)
            self.assertEqual(len(faults(spoilt, SCHEMA)), 1, spoilt)


unittest.main(argv=sys.argv[:1])
