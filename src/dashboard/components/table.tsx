import type { ComponentChildren } from 'preact';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  readonly isNumber?: boolean;
}

/** On a phone each row is a card, with the title before each value. */
export function Table<Row>({
  columns,
  rows,
  keyOf,
}: {
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
}) {
  const classOf = ({ isNumber = false }: Column<Row>) => (isNumber ? 'number' : '');
  return (
    <div class="table">
      <table class="cards">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.title} class={classOf(column)} data-label={column.title}>
                  <span>{column.cell(row)}</span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
