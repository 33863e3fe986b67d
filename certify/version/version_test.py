"""Output of `attest --version --json` is what certify/schemas/version.schema.json says, and the text says
the same. The commit follows the sources and no repository around them."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
SCHEMA = os.path.join(HERE, '..', 'schemas', 'version.schema.json')


def attest(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True)


def commit_of(folder):
    """The commit that the build would write of the sources in a folder."""
    output = os.path.join(folder, 'commit.cpp')
    subprocess.run([CMAKE, f'-DSOURCE={folder}', f'-DOUT={output}', '-P',
                    os.path.join(HERE, '..', '..', 'ci', 'cmake', 'commit.cmake')], check=True)
    with open(output) as file:
        return re.search('return "(.*)"', file.read())[1]


class VersionTest(unittest.TestCase):
    def test_json(self):
        said = json.loads(attest('--version', '--json').stdout)
        with open(SCHEMA) as file:
            schema = json.load(file)
        self.assertEqual(sorted(said), sorted(schema['required']))
        self.assertEqual(sorted(said), sorted(schema['properties']))
        for name, field in schema['properties'].items():
            kinds = {'string': str, 'integer': int, 'object': dict, 'null': type(None)}
            types = field['type'] if isinstance(field['type'], list) else [field['type']]
            self.assertIsInstance(said[name], tuple(kinds[kind] for kind in types), name)
            self.assertRegex(str(said[name]), field.get('pattern', '.'), name)
        libraries = schema['properties']['libraries']
        self.assertEqual(sorted(said['libraries']), sorted(libraries['required']))
        for name, version in said['libraries'].items():
            self.assertRegex(version, r'^\d+\.\d+', name)
        text = attest('--version').stdout
        for word in (f"attest {said['version']}\n", said['commit'] or 'unknown', said['compiler'],
                     f"version {said['kernel_abi']} of attest_kernel.h",
                     *(f'{name} {version}' for name, version in said['libraries'].items())):
            self.assertIn(word, text)

    def test_json_alone_is_no_command(self):
        for words in (['--json'], ['--json', 'list']):
            done = attest(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ''), words)
            self.assertIn('--version', done.stderr)

    @unittest.skipUnless(shutil.which('git'), 'no git')
    def test_commit(self):
        with tempfile.TemporaryDirectory() as folder:
            def git(*words):
                subprocess.run(['git', '-C', folder, '-c', 'user.name=n', '-c', 'user.email=e', *words],
                               check=True, capture_output=True)
            self.assertEqual(commit_of(folder), '')
            git('init')
            self.assertEqual(commit_of(folder), '')
            source = os.path.join(folder, 'source')
            with open(source, 'w') as file:
                file.write('1')
            git('add', 'source')
            git('commit', '-m', 'a')
            git('tag', '-a', '-m', 't', 'v1')
            self.assertRegex(commit_of(folder), '^[0-9a-f]{40}$')
            with open(source, 'w') as file:
                file.write('2')
            self.assertRegex(commit_of(folder), '^[0-9a-f]{40}[+]changes$')
            inside = os.path.join(folder, 'inside')
            os.mkdir(inside)
            self.assertEqual(commit_of(inside), '')


if __name__ == '__main__':
    CMAKE = sys.argv.pop()
    PROGRAM = sys.argv.pop()
    unittest.main()
