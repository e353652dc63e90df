import { useEffect, useState } from 'preact/hooks';
import { setSearch } from '../router.js';

/** Goes into the address when it is entered. */
export function FilterText({
  name,
  label,
  placeholder,
  value,
}: {
  name: string;
  label: string;
  placeholder: string;
  value: string;
}) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={placeholder}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onChange={() => setSearch({ [name]: text.trim() })}
    />
  );
}
