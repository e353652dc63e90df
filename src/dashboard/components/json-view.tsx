import type { JsonTree } from '../exact-json.js';
import { printExact } from '../exact-json.js';
import { plural } from '../format.js';

/** Unfolded to this depth at first. */
const openDepth = 2;
/** Members shown of one object or array: more would stall the page. */
const maxShown = 200;

export function JsonView({ tree, label }: { tree: JsonTree; label: string }) {
  return (
    <div class="json" role="group" aria-label={label}>
      <Node tree={tree} depth={0} />
      <button
        type="button"
        class="plain copy"
        onClick={() => void navigator.clipboard.writeText(printExact(tree))}
      >
        Copy
      </button>
    </div>
  );
}

function Node({ tree, name, depth }: { tree: JsonTree; name?: string; depth: number }) {
  const label = name === undefined ? null : <span class="key">{name}: </span>;
  if (tree.kind !== 'object' && tree.kind !== 'array') {
    const text = tree.kind === 'string' ? JSON.stringify(tree.value) : tree.text;
    return (
      <div class="leaf">
        {label}
        <span class={tree.kind}>{text}</span>
      </div>
    );
  }
  const entries =
    tree.kind === 'object'
      ? tree.members
      : tree.items.map((item, index) => [String(index), item] as const);
  const [open, close] = tree.kind === 'object' ? ['{', '}'] : ['[', ']'];
  if (entries.length === 0) {
    return (
      <div class="leaf">
        {label}
        {open}
        {close}
      </div>
    );
  }
  const left = entries.length - maxShown;
  return (
    <details open={depth < openDepth}>
      <summary>
        {label}
        {open} <span class="dim">{plural(entries.length, 'member')}</span> {close}
      </summary>
      <div class="inside">
        {entries.slice(0, maxShown).map(([key, member]) => (
          <Node key={key} tree={member} name={key} depth={depth + 1} />
        ))}
        {left > 0 ? <div class="dim">and {plural(left, 'more member')}: copy shows all</div> : null}
      </div>
    </details>
  );
}
