// The code of a Markdown page, by what the comment above a block says:
//   <!-- examples/x.ts -->     lines of that example, which test/docs.test.ts compares
//   <!-- file: jest/x.mjs -->  a file of that project
//   nothing                    a module that uses what the page introduced before
const block = /^(?:<!-- (?<comment>[^>]+) -->\n\n)?```(?<language>ts|js)\n(?<code>[^]*?)^```$/gm;

/** These have what no project here has: a Postgres server, a server of another machine. */
const needsMore = /\bdatabaseUrl\b|queue:7700/;

export function snippetsOf(page, markdown) {
  return [...markdown.matchAll(block)].flatMap(({ index, groups }) => {
    const { comment = '', language, code } = groups;
    const line = markdown.slice(0, index).split('\n').length;
    if (comment.startsWith('examples/')) return [];
    if (comment.startsWith('file: ')) {
      const [project, name] = comment.slice('file: '.length).split('/');
      return [{ project, name, code, runs: false }];
    }
    const name = `${page.replace(/\W/g, '-')}-line-${line}.${language}`;
    // So that each is a module of its own.
    return [{ project: 'esm', name, code: `${code}export {};\n`, runs: !needsMore.test(code) }];
  });
}
