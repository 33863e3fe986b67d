#include "certify/report/html/page_style.hpp"

namespace attest::certify {

// Status colours keep a contrast of 4.5 with their ground in both schemes; nothing is said by
// colour alone.
const char* const kPageStyle = R"css(
:root{color-scheme:light dark;--ground:#f6f7f9;--card:#fff;--ink:#1b2330;--soft:#5b6678;
--faint:#8a94a6;--line:#e2e6ec;--mark:#eef1f5;--accent:#2f6feb;--accent-soft:#2f6feb22;
--good:#12724a;--good-soft:#e3f5ec;--bad:#b3261e;--bad-soft:#fcebea;--warn:#8a5a00;
--warn-soft:#fdf3dc;--crash:#7b2cbf;--crash-soft:#f3e8fd;
--e1:#f5c26b;--e2:#ec8a3a;--e3:#d4492c;--e4:#9c1c2b;--e5:#5b1280}
@media(prefers-color-scheme:dark){:root{--ground:#10141b;--card:#181e28;--ink:#e6eaf1;
--soft:#a3aebf;--faint:#76839a;--line:#2a3342;--mark:#212938;--accent:#6ea2ff;
--accent-soft:#6ea2ff2e;--good:#5bd39b;--good-soft:#12331f;--bad:#ff8a80;--bad-soft:#3d1a1a;
--warn:#f2c15a;--warn-soft:#38290c;--crash:#cfa3ff;--crash-soft:#2d1a44;
--e1:#8a6a2c;--e2:#bf7426;--e3:#e2603c;--e4:#ff5b5b;--e5:#d08bff}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1080px;margin:0 auto;padding:28px 20px 60px}
code,pre,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
font-size:.86em}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .3em;letter-spacing:-.01em}
h2{font-size:1.2rem;margin:0;overflow-wrap:anywhere}
h3{font-size:.78rem;letter-spacing:.06em;text-transform:uppercase;color:var(--soft);
margin:26px 0 10px;font-weight:650}
p{margin:.4em 0;overflow-wrap:anywhere}
a{color:inherit;text-decoration-color:var(--faint);text-underline-offset:3px}
.soft{color:var(--soft)}.small{font-size:.86rem}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:20px 22px;
margin-top:18px}
.banner{border-left:8px solid var(--tone);background:linear-gradient(90deg,var(--tone-soft),
var(--card) 60%);margin-top:0}
.banner .word{font-size:2.1rem;font-weight:750;color:var(--tone);line-height:1.15;
letter-spacing:-.01em}
.facts{display:flex;flex-wrap:wrap;gap:6px 26px;margin-top:12px}
.facts b{font-weight:650}
.good{--tone:var(--good);--tone-soft:var(--good-soft)}
.bad{--tone:var(--bad);--tone-soft:var(--bad-soft)}
.warn{--tone:var(--warn);--tone-soft:var(--warn-soft)}
.crash{--tone:var(--crash);--tone-soft:var(--crash-soft)}
.chip{display:inline-block;padding:1px 9px;border-radius:99px;font-size:.8rem;font-weight:650;
background:var(--tone-soft);color:var(--tone);white-space:nowrap}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th{font-weight:600;font-size:.8rem;color:var(--soft);text-align:left}
th,td{padding:6px 10px 6px 0;border-bottom:1px solid var(--line);vertical-align:middle}
tr:last-child td{border-bottom:0}
td.n,th.n{text-align:right;white-space:nowrap}
td.wide{min-width:110px}
td.problem{overflow-wrap:anywhere;min-width:240px}
.head{display:flex;gap:12px;align-items:center;flex-wrap:wrap}
.finding{border:1px solid var(--line);border-left:4px solid var(--tone);border-radius:8px;
padding:12px 16px;margin-top:10px}
.finding>.split{display:grid;grid-template-columns:minmax(0,1fr) auto;gap:22px}
.finding figure{width:264px;margin:2px 0 0}
.more{margin-top:12px}
@media(max-width:760px){.finding>.split{display:block}}
.equals{margin:8px 0;font-weight:650;color:var(--tone)}
pre{background:var(--mark);border-radius:8px;padding:10px 12px;margin:8px 0 0;white-space:pre-wrap;
overflow-wrap:anywhere;user-select:all}
.split{display:flex;gap:26px;flex-wrap:wrap;align-items:flex-start}
.split>.grow{flex:1 1 600px;min-width:0}
figure{margin:8px 0 0}
figcaption{font-size:.8rem;color:var(--soft);margin-top:4px;max-width:330px}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(228px,1fr));gap:14px 20px}
svg{display:block;max-width:100%;height:auto}
svg text{font:11px system-ui,"DejaVu Sans",sans-serif;fill:var(--soft)}
svg .strong{fill:var(--ink);font-weight:650;font-size:12px}
.matrix{width:auto}
.matrix th,.matrix td{border:0;padding:2px}
.matrix th{padding-right:10px;font-weight:500;white-space:nowrap}
.matrix td{text-align:center;width:64px;height:26px;border-radius:5px;font-size:.82rem;
border:2px solid var(--card);background-clip:padding-box}
.none{color:var(--faint)}
.missing{background:var(--warn-soft);color:var(--warn);font-weight:650}
.matrix td.missing{background-clip:padding-box}
.bar{display:flex;height:10px;border-radius:5px;overflow:hidden;background:var(--mark);
min-width:100px}
.bar i{display:block;height:100%}
.legend{display:flex;gap:14px;flex-wrap:wrap;font-size:.8rem;color:var(--soft);margin-top:8px}
.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:5px}
h3 code{text-transform:none;letter-spacing:0;font-size:1.05em}
h3.plain{text-transform:none;letter-spacing:0;font-size:.86rem}
sup,sub{font-size:.72em;line-height:0}
.root{border-top:1px solid currentColor;padding:0 1px}
th.sorts{cursor:pointer;user-select:none}
th.sorts:hover,th.sorts:focus-visible{color:var(--accent)}
th[aria-sort]::after{content:" \25B4";font-size:.8em}
th[aria-sort=descending]::after{content:" \25BE"}
.filter{display:flex;gap:12px;align-items:center;margin:10px 0 6px;font-size:.86rem;color:var(--soft)}
input[type=search]{font:inherit;color:var(--ink);background:var(--ground);
border:1px solid var(--line);border-radius:8px;padding:5px 10px;width:min(300px,60vw)}
.counts{display:flex;flex-wrap:wrap;gap:10px;margin:14px 0 4px}
.counts .count{font:inherit;text-align:left;color:inherit;background:var(--tone-soft);
border:1px solid transparent;border-radius:10px;padding:8px 16px;cursor:pointer;text-decoration:none}
.counts .count:hover,.counts .count[aria-pressed=true]{border-color:var(--tone)}
.counts .count b{display:block;font-size:1.7rem;line-height:1.15;color:var(--tone)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(300px,100%),1fr));gap:18px}
.tiles .card h2{margin-bottom:.3em}
.law{scroll-margin-top:20px}
dl{margin:.4em 0}dt{font-weight:600;margin-top:.6em}dd{margin:0;color:var(--soft)}
:target{background:var(--accent-soft)}
#claims td:first-child{min-width:min(52vw,300px)}
figure.plot{overflow-x:auto;margin:18px 0}
figure.plot svg{min-width:720px;width:100%}
figure.plot figcaption{max-width:none}
td .chip{white-space:normal;border-radius:10px}
@media(prefers-color-scheme:dark){figure.plot svg{filter:brightness(1.35)}}
@media(max-width:560px){main{padding:14px 10px 40px}.card{padding:14px 14px;border-radius:10px}
.banner .word{font-size:1.6rem}h1{font-size:1.35rem}th,td{padding-right:14px}}
details>summary{cursor:pointer;list-style:none}
details>summary::-webkit-details-marker{display:none}
details>summary .head::after{content:"\25B8";color:var(--faint);margin-left:auto}
details[open]>summary .head::after{content:"\25BE"}
summary.plain{color:var(--soft);font-size:.86rem}
summary.plain::before{content:"\25B8\00A0"}
details[open]>summary.plain::before{content:"\25BE\00A0"}
ul{margin:.3em 0;padding-left:1.2em}
footer{margin-top:26px;color:var(--soft);font-size:.84rem}
@media print{body{background:#fff}.card{break-inside:avoid}}
)css";

}  // namespace attest::certify
