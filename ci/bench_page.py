"""The page of a record of ci/bench-cpu, in the style of the reports."""
import html
import os
import re

REPORTS = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', 'certify', 'report', 'html')
OURS = 'cpu/flash2'
IN_PAIRS = 'cpu/flash2_bf16'
# Ours first; they are told apart in light and dark.
COLOURS = ('var(--accent)', '#c17d11', '#73a046', '#a04673', '#8a94a6', '#2a9d9d', '#8a6a4a', '#b8a000')


def ours(kind):
    """Our kernel that is timed beside the peers in a kind of call."""
    return IN_PAIRS if kind == 'pairs' else OURS


def short(problem):
    """The words of a problem that tell it from the others of this script."""
    words = dict(word.split('=') for word in problem.split(','))
    same = {'b': '1', 'hkv': words['hq'], 'sk': words['sq'], 'dv': words['d'], 'mask': 'none', 'dtype': 'f32', 'layout': 'bshd',
            'scale': '1/sqrt(d)'}
    return ','.join(f'{key}={value}' for key, value in words.items() if same.get(key) != value)


def share(row):
    """The share of the bound: of decoding the read bandwidth, else the peak."""
    if 'share_of_bandwidth' in row:
        return f'{100 * row["share_of_bandwidth"]:.0f} % of the bandwidth'
    return f'{100 * row["share_of_peak"]:.0f} %'


def speeds(record):
    """Tells the measured peak and the read bandwidth, least to most over the problems, with the median; '' of a record without them."""
    def spread(three, unit):
        least, middle, most = (one / 1e9 for one in three)
        return f'{middle:.1f} [{least:.1f} {most:.1f}] {unit}'

    if 'peak_flops_per_second' not in record:
        return ''
    read = [f'{spread(three, "GB/s")} on {threads} thread{"s" * (threads != "1")}' for threads, three in record['read_bytes_per_second'].items()]
    return (f'Peak of fused multiply-adds of one thread {spread(record["peak_flops_per_second"], "GFLOP/s")}, '
            f'read bandwidth {", ".join(read)}; median [least most] over the problems.')


def of_reports(name, kind):
    """The style sheet, or the script that sorts tables, of the reports."""
    with open(os.path.join(REPORTS, name)) as file:
        return re.search(rf'R"{kind}\((.*?)\){kind}"', file.read(), re.DOTALL).group(1)


def plot(rows, names):
    """Bars of operations a second, a group for each problem; a name has one colour on the whole page."""
    most = max(row['flops_per_second'] for row in rows)
    parts, y = [], 4
    last = None
    for row in rows:
        if row['problem'] != last:
            y += 20
            parts.append(f"<text class='strong' x='0' y='{y}'>{html.escape(short(row['problem']))}</text>")
            last = row['problem']
        y += 15
        width = 520 * row['flops_per_second'] / most
        parts.append(f"<rect x='0' y='{y - 10}' width='{width:.1f}' height='12' fill='{COLOURS[names.index(row['name']) % len(COLOURS)]}'/>"
                     f"<text x='{width + 6:.1f}' y='{y}'>{row['flops_per_second'] / 1e9:.1f} {html.escape(row['name'])}</text>")
    return f"<figure class='plot'><svg role='img' viewBox='0 0 820 {y + 12}'>{''.join(parts)}</svg></figure>"


def table(rows):
    text = ['<div class="scroll"><table class="data"><thead><tr><th>problem</th><th>name</th><th class="n">ms [quartiles]</th><th class="n">GFLOP/s</th>'
            '<th class="n">of the peak</th><th class="n">speed over the best peer</th></tr></thead><tbody>']
    for row in rows:
        low, middle, high = (1e3 * s for s in row['seconds'])
        ratio = row.get('speed_over_best_peer')
        over = f'{ratio[1]:.2f} [{ratio[0]:.2f} {ratio[2]:.2f}] {row["best_peer"]}' if ratio else ''
        numbers = (f'{middle:.2f} [{low:.2f} {high:.2f}]', f'{row["flops_per_second"] / 1e9:.1f}',
                 share(row), over)
        text.append(f'<tr><td>{html.escape(short(row["problem"]))}</td><td>{html.escape(row["name"])}</td>' +
                    ''.join(f'<td class="n">{html.escape(cell)}</td>' for cell in numbers) + '</tr>')
    return '\n'.join(text) + '</tbody></table></div>'


def page(record):
    """The page: a plot and a table for each kind of call and number of threads."""
    host, title = record['host'], 'Kernels on the CPU beside their peers'
    text = ['<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
            f'<title>{title}</title><style>{of_reports("page_style.cpp", "css")}</style></head><body><main><h1>{title}</h1>'
            f'<p class="soft">{html.escape(host["processor"])}, {host["threads"]} threads, target {html.escape(record["cpu_target"])}; load average '
            f'before and after {host["load"][0]:.1f} and {host["load"][1]:.1f}. Medians of {record["rounds"]} rounds in shuffled order; '
            'ratios are paired by round.</p>']
    built = [f'commit {host["commit"]}'] if host.get('commit') else []
    built += [f'{name} {version}' for name, version in record.get('versions', {}).items()]
    text += [f'<p class="soft">{html.escape(line)}</p>' for line in (speeds(record), ', '.join(built)) if line]
    absent = [f'missing: {name} ({why})' for name, why in record['missing'].items()]
    absent += [f'not timed: {one}' for one in record['refused']]
    if absent:
        text.append('<ul class="small">' + ''.join(f'<li>{html.escape(one)}</li>' for one in absent) + '</ul>')
    names = sorted({row['name'] for row in record['rows']}, key=lambda name: (name not in (OURS, IN_PAIRS), name))
    for kind, threads in dict.fromkeys((row['kind'], row['threads']) for row in record['rows']):
        rows = [row for row in record['rows'] if (row['kind'], row['threads']) == (kind, threads)]
        many = '' if threads == 1 else 's'
        text.append(f'<div class="card"><h2>{html.escape(kind)}, {threads} thread{many}, GFLOP/s</h2>{plot(rows, names)}{table(rows)}</div>')
    text.append(f'</main><script>{of_reports("page_script.cpp", "js")}</script></body></html>')
    return '\n'.join(text) + '\n'
