import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { explain } from '../http.js';
import { Dialog } from './dialog.js';

/** A form in a window. `submit` throws what the form then shows; else it closes the window itself. */
export function FormDialog({
  title,
  button,
  submit,
  onClose,
  children,
  isWide = false,
}: {
  title: string;
  button: string;
  submit: () => Promise<void>;
  onClose: () => void;
  children: ComponentChildren;
  isWide?: boolean;
}) {
  const [fault, setFault] = useState<string | null>(null);
  return (
    <Dialog title={title} onClose={onClose} isWide={isWide}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          submit().catch((error: unknown) => setFault(explain(error)));
        }}
      >
        {children}
        {fault === null ? null : (
          <p class="failure" role="alert">
            {fault}
          </p>
        )}
        <footer>
          <button type="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class="main">
            {button}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
