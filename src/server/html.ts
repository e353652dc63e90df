const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => entities[character] ?? character);
}

const style = `
:root { color-scheme: light dark; --line: light-dark(#ddd, #3a3a3a); --soft: light-dark(#f5f5f3, #232323); --dim: light-dark(#666, #999); --link: light-dark(#0b62a8, #7cc0ff); }
* { box-sizing: border-box; }
body { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; font: 16px/1.5 system-ui, sans-serif; background: light-dark(#fff, #181818); color: light-dark(#1b1b1b, #e6e6e6); }
h1 { margin: 0; } h2 { margin: 2.5rem 0 .5rem; padding-bottom: .2rem; border-bottom: 1px solid var(--line); } h3 { margin: 1.2rem 0 .3rem; }
a { color: var(--link); } p { margin: .3rem 0; } .dim { color: var(--dim); }
code, pre { font: 13px/1.5 ui-monospace, monospace; } pre { padding: .7rem; overflow-x: auto; background: var(--soft); border-radius: 6px; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: 1rem 0; }
details { margin: .4rem 0; border: 1px solid var(--line); border-radius: 6px; } details[open] { padding-bottom: .6rem; }
summary { padding: .4rem .7rem; cursor: pointer; } details > :not(summary) { margin-left: .7rem; margin-right: .7rem; }
.method { display: inline-block; min-width: 4.2rem; font-weight: 600; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; margin: .4rem 0; font-size: 14px; } th, td { padding: .25rem .6rem .25rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
.door { max-width: 24rem; margin: 12vh auto 0; } .door p { margin: .6rem 0; } .door input, .door button { font: inherit; padding: .5rem .7rem; border: 1px solid var(--line); border-radius: 6px; } .door input { width: 100%; background: var(--soft); color: inherit; } .door button { background: light-dark(#0b7285, #15aabf); color: light-dark(#fff, #08191c); border-color: transparent; font-weight: 600; cursor: pointer; } [role=alert] { color: light-dark(#b42318, #ff9c8f); }
:target { outline: 2px solid var(--link); outline-offset: 3px; }
`;

/** One page that loads nothing; `body` is HTML. */
export function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body>
${body}
</body>
</html>
`;
}
