"""Reads records of ci/bench-cpu: tables in Markdown, aims, and what has changed since an earlier one."""
import collections
import json
import statistics

from bench_page import ours, share, short

# Kind, measure, the least of it, and its words.
AIMS = (('forward', 'speed_over_best_peer', 1.05, 'forward in float32 at least 1.05 × the best peer'),
        ('forward', 'share_of_peak', 0.75, 'forward in float32 at least 75 % of the peak'),
        ('backward', 'speed_over_best_peer', 1.05, 'backward in float32 at least 1.05 × the best peer'),
        ('backward', 'share_of_peak', 0.7, 'backward in float32 at least 70 % of the peak'),
        ('bf16', 'speed_over_best_peer', 1.0, 'forward in bf16 at least 1 × the best peer'),
        ('pairs', 'speed_over_best_peer', 1.0, 'forward in bf16, products in pairs, at least 1 × the best peer'),
        ('decode', 'share_of_bandwidth', 0.85, 'decoding at least 85 % of the read bandwidth'),
        ('ragged', 'speed_over_2048', 1 / 1.1, 'N = 2047 and 2049 at least 1/1.1 × the operations a second of 2048'))


def key(row):
    return row['problem'], row['threads'], row['kind']


def ours_of(rows):
    return {key(row): row for row in rows if row['name'] == ours(row['kind'])}


def of_threads(count):
    return f'{count} thread{"s" * (count > 1)}'


def measured(rows):
    """Returns least, median and most over the problems: of the peak, and of the read bandwidth by threads."""
    once = {key(row): row for row in rows}.values()

    def spread(values):
        values = sorted(values)
        return [values[0], statistics.median(values), values[-1]]

    if not once:
        return {}
    return {'peak_flops_per_second': spread(row['peak_flops_per_second'] for row in once),
            'read_bytes_per_second': {str(n): spread(row['read_bytes_per_second'] for row in once if row['threads'] == n)
                                      for n in sorted({row['threads'] for row in once})}}


def regressions(rows, earlier, asked):
    """Tells on which of the problems `asked` our kernel is missing, unlike earlier, or has a ratio to the best peer below the earlier quartiles."""
    now, before, found = ours_of(rows), ours_of(earlier), []
    for one in asked:
        if one not in before:
            continue
        problem, threads, kind = one
        where = f'{kind} {short(problem)}, {of_threads(threads)}'
        if one not in now:
            found.append(f'{where}: {ours(kind)} was not timed; the earlier record has it')
            continue
        new, old = (some[one].get('speed_over_best_peer') for some in (now, before))
        if new and old and new[2] < old[0]:
            found.append(f'{where}: {new[1]:.2f} of the best peer, was {old[1]:.2f}')
    return found


def notes(record, earlier, asked):
    """Tells what makes the two records differ beside the kernel: processor, target, problems and peers."""
    before, found = ours_of(earlier['rows']), []
    for word, here, there in (('processor', record['host']['processor'], earlier.get('host', {}).get('processor')),
                              ('target', record['cpu_target'], earlier.get('cpu_target'))):
        if there and here != there:
            found.append(f'compared with a record of another {word}: {there}, here {here}')
    new = [one for one in asked if one not in before]
    if new:
        found.append(f'{len(new)} of {len(asked)} problems are not in the earlier record')
    timed = {(key(row), row['name']) for row in record['rows']}
    best = [before[one].get('best_peer') for one in asked if one in before and (one, before[one].get('best_peer')) not in timed]
    found += [f'{peer} was the best peer of the earlier record on {count} problems, and was not timed on them'
              for peer, count in collections.Counter(best).items() if peer]
    return found


def table(rows):
    """Lines of Markdown: the ratios to the best peer, a row for each problem, two columns for each number of threads."""
    compared = {(row['problem'], row['kind'], row['threads']): row for row in ours_of(rows).values() if 'best_peer' in row}
    counts = sorted({threads for _, _, threads in compared})
    lines = ['| problem | kind |' + ''.join(f' {of_threads(n)} | of the peak |' for n in counts), '|---' * (2 + 2 * len(counts)) + '|']
    for problem, kind in dict.fromkeys(key[:2] for key in compared):
        line = f'| {short(problem)} | {kind} |'
        for threads in counts:
            row = compared.get((problem, kind, threads))
            if row is None:
                line += ' | |'
                continue
            low, middle, high = row['speed_over_best_peer']
            line += f' {middle:.2f} [{low:.2f} {high:.2f}] {row["best_peer"].split("/")[0]} | {share(row)} |'
        lines.append(line)
    return lines


def value(row, measure, rows):
    """Returns the median of a measure, None where the record does not have it."""
    if measure == 'speed_over_2048':
        words = short(row['problem']).replace('sq=2047', 'sq=2048').replace('sq=2049', 'sq=2048')
        even = next((other for other in rows if other['kind'] == 'forward' and other['threads'] == row['threads'] and
                     short(other['problem']) == words), None)
        return even and row['flops_per_second'] / even['flops_per_second']
    found = row.get(measure)
    return found[1] if isinstance(found, list) else found


def aims(rows):
    """Lines of Markdown: for each aim of what was timed how many rows of our kernel reach it, and those that do not."""
    timed, lines = list(ours_of(rows).values()), ['| aim | reached | missed, threads: value |', '|---|---|---|']
    for kind, measure, least, words in AIMS:
        values = [(row, value(row, measure, timed)) for row in timed if row['kind'] == kind]
        values = [(row, found) for row, found in values if found is not None]
        if not values:
            continue
        missed = collections.defaultdict(list)
        for row, found in values:
            if found < least:
                shown = f'{100 * found:.1f} %' if measure.startswith('share') else f'{found:.4f}'
                missed[short(row['problem'])].append(f'{row["threads"]}: {shown}')
        reached = len(values) - sum(map(len, missed.values()))
        lines.append(f'| {words} | {reached} of {len(values)} | ' +
                     ('; '.join(f'{problem} ({", ".join(each)})' for problem, each in missed.items()) or 'none') + ' |')
    return lines


def dumped(record):
    """JSON with a line for each row, so that records of two days can be compared line by line."""
    head = json.dumps({key: value for key, value in record.items() if key != 'rows'}, indent=1)
    return head[:-2] + ',\n "rows": [\n  ' + ',\n  '.join(json.dumps(row) for row in record['rows']) + '\n ]\n}\n'
