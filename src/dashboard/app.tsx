import { useEffect, useState } from 'preact/hooks';
import { Dialog } from './components/dialog.js';
import { config } from './config.js';
import { connection } from './http.js';
import { helpIsOpen } from './keyboard.js';
import { dismiss, notices } from './notices.js';
import { pageOf } from './pages.js';
import { href } from './href.js';
import { go, route } from './router.js';
import { sections } from './sections.js';
import { useStore } from './store.js';
import { switchTheme, theme } from './theme.js';

export function App() {
  const { segments } = useStore(route);
  const [section = ''] = segments;
  const { title, page } = pageOf(segments);
  useEffect(() => {
    const environment = config.environment === null ? '' : ` (${config.environment})`;
    document.title = `${title} – Sluice${environment}`;
  }, [title]);
  return (
    <>
      <a class="skip" href="#content" onClick={skipToContent}>
        Skip to the content
      </a>
      <TopBar section={section} />
      <Lost />
      <main id="content" tabIndex={-1}>
        {config.may.read ? page : <NoRead />}
      </main>
      <Notices />
      <Help />
    </>
  );
}

/** `#content` is no page: the address stays. */
function skipToContent(event: Event): void {
  event.preventDefault();
  document.getElementById('content')?.focus();
}

function NoRead() {
  return (
    <div class="empty">
      <p class="strong">The key {config.name} has not the scope read.</p>
      <p>Sign in with another one: sluice keys create --name me --scopes read</p>
    </div>
  );
}

function TopBar({ section }: { section: string }) {
  const [isOpen, setOpen] = useState(false);
  const { segments } = useStore(route);
  useEffect(() => setOpen(false), [segments]);
  return (
    <header class={`top ${isOpen ? 'open' : ''}`}>
      <a class="brand" href="#/">
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <rect width="16" height="16" rx="4" />
          <path d="M3 5.5h10M3 8h7M3 10.5h4" />
        </svg>
        Sluice
      </a>
      {config.environment === null ? null : <span class="environment">{config.environment}</span>}
      <button
        type="button"
        class="plain menu"
        aria-expanded={isOpen}
        aria-controls="pages"
        onClick={() => setOpen(!isOpen)}
      >
        Menu
      </button>
      <nav id="pages" aria-label="Pages">
        {sections.map(({ name, title }) => (
          <a key={name} href={href(name)} aria-current={name === section ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <Tools />
    </header>
  );
}

function Tools() {
  const chosen = useStore(theme);
  return (
    <div class="tools">
      <FindTask />
      <button
        type="button"
        class="plain"
        onClick={switchTheme}
        aria-label={`Theme: ${chosen}. Switch`}
        title={`Theme: ${chosen}`}
      >
        {{ system: '◐', light: '☀', dark: '☾' }[chosen]}
      </button>
      <button
        type="button"
        class="plain"
        aria-label="Keyboard shortcuts"
        onClick={() => helpIsOpen.set(true)}
      >
        ?
      </button>
      {config.canSignOut ? (
        <form method="post" action="sign-out">
          <button class="plain" title={`Signed in with the key ${config.name ?? ''}`}>
            Sign out
          </button>
        </form>
      ) : null}
    </div>
  );
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** An id leads to its task, anything else to the queues whose names have it. */
function FindTask() {
  const [text, setText] = useState('');
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const sought = text.trim();
        if (sought === '') return;
        setText('');
        go(
          uuid.test(sought)
            ? href('tasks', sought)
            : `#/queues?search=${encodeURIComponent(sought)}`,
        );
      }}
    >
      <input
        id="find"
        type="search"
        placeholder="Task id or queue"
        aria-label="Find a task by its id, or a queue by its name"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </form>
  );
}

function Lost() {
  const state = useStore(connection);
  return (
    <div role="status" class="status">
      {state === 'lost' ? (
        <p class="lost">
          The connection to the server is lost. What you see is the last that was heard; it is tried
          again every 2 s.
        </p>
      ) : null}
    </div>
  );
}

function Notices() {
  const shown = useStore(notices);
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown.map(({ id, kind, text }) => (
        <p key={id} class={kind}>
          <span>{text}</span>
          <button type="button" class="plain" aria-label="Dismiss" onClick={() => dismiss(id)}>
            ✕
          </button>
        </p>
      ))}
    </div>
  );
}

function Help() {
  if (!useStore(helpIsOpen)) return null;
  const keys: readonly (readonly [string, string])[] = [
    ['/', 'Search'],
    ['?', 'This help'],
    ...sections.map(({ key, title }) => [`g ${key}`, title] as const),
    ['Esc', 'Close'],
  ];
  return (
    <Dialog title="Keyboard" onClose={() => helpIsOpen.set(false)}>
      <table class="keys">
        <tbody>
          {keys.map(([key, meaning]) => (
            <tr key={key}>
              <th scope="row">
                {key.split(' ').map((each) => (
                  <kbd key={each}>{each}</kbd>
                ))}
              </th>
              <td>{meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  );
}
