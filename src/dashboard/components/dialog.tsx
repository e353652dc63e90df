import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';

/** A modal window; Escape closes it, and the focus goes back where it was. */
export function Dialog({
  title,
  onClose,
  children,
  isWide = false,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  isWide?: boolean;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      class={isWide ? 'wide' : ''}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2 id={titleId}>{title}</h2>
        <button type="button" class="plain" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}

export interface Confirmation {
  readonly title: string;
  readonly text: ComponentChildren;
  /** What has to be typed, for what cannot be undone. Absent: a click is enough. */
  readonly name?: string;
  readonly button: string;
  readonly action: () => Promise<unknown>;
}

function Confirm({ confirmation, onClose }: { confirmation: Confirmation; onClose: () => void }) {
  const { title, text, name, button, action } = confirmation;
  const [typed, setTyped] = useState('');
  const [isBusy, setBusy] = useState(false);
  const isReady = (name === undefined || typed === name) && !isBusy;
  const inputId = useId();
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!isReady) return;
          setBusy(true);
          void action().finally(onClose);
        }}
      >
        <div class="text">{text}</div>
        {name === undefined ? null : (
          <div class="field">
            <label for={inputId}>
              Type <b class="mono">{name}</b> to confirm
            </label>
            <input
              id={inputId}
              value={typed}
              autocomplete="off"
              spellcheck={false}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </div>
        )}
        <footer>
          <button type="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class={name === undefined ? 'main' : 'danger'} disabled={!isReady}>
            {button}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** The dialog that is asked for, and how to ask. */
export function useConfirm(): [ComponentChildren, (confirmation: Confirmation) => void] {
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const shown =
    confirmation === null ? null : (
      <Confirm confirmation={confirmation} onClose={() => setConfirmation(null)} />
    );
  return [shown, setConfirmation];
}
