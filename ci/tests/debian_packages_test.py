#!/usr/bin/env python3
"""attest-dev depends on or recommends the Debian package of each library that find_package(attest) looks for.

usage: debian_packages_test.py BUILD
Where a library was found is asked of dpkg; without dpkg skipped (exit 77).
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

BUILD = sys.argv[1]
# Modules that are no file of the library's own: a file of it that CMake found, or the packages that have one.
FOUND_BY_FILE = {'OpenSSL': 'OPENSSL_CRYPTO_LIBRARY', 'PkgConfig': 'PKG_CONFIG_EXECUTABLE'}
PACKAGES = {'OpenMP': {'g++', 'libomp-dev'}, 'CUDAToolkit': {'nvidia-cuda-toolkit'}}


def read(name):
    with open(os.path.join(BUILD, name), encoding='utf-8') as file:
        return file.read()


def package_of(path):
    """Returns the package that installed the file; '' for one that none did."""
    for place in (path, os.path.realpath(path)):
        done = subprocess.run(['dpkg', '-S', place], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.split(':')[0]
    return ''


def without_version(package):
    return re.sub(r'(?<=[a-z])[\d.]+(?=-dev$)', '', package)


class DebianPackages(unittest.TestCase):
    def test_each_dependency_is_named(self):
        fields = re.findall(r'CPACK_DEBIAN_DEVELOPMENT_PACKAGE_(?:DEPENDS|RECOMMENDS) "(.*)"', read('CPackConfig.cmake'))
        named = {word.split()[0] for word in re.split(r'[,|]', ','.join(fields))}
        cache = dict(re.findall(r'^(\w+):\w+=(.*)$', read('CMakeCache.txt'), re.M))
        wanted = re.findall(r'^find_dependency\((\w+)', read('attestConfig.cmake'), re.M)
        self.assertIn('OpenSSL', wanted)
        asked = 0
        for name in wanted:
            packages = PACKAGES.get(name)
            if packages is None:
                found = cache[FOUND_BY_FILE[name]] if name in FOUND_BY_FILE else cache[f'{name}_DIR']
                package = package_of(found)
                if not package:
                    continue  # from elsewhere than a package of this machine
                packages = {package, without_version(package)}
                asked += 1
            self.assertTrue(packages & named, f'{name} is in {packages}, and attest-dev names {sorted(named)}')
        print(f'{len(wanted)} libraries, {asked} asked of dpkg')

    def test_versions(self):
        self.assertEqual(without_version('libboost1.74-dev'), 'libboost-dev')
        self.assertEqual(without_version('nlohmann-json3-dev'), 'nlohmann-json-dev')
        self.assertEqual(without_version('libssl-dev'), 'libssl-dev')


if __name__ == '__main__':
    if shutil.which('dpkg') is None:
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
