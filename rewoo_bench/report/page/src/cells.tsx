import { Copy } from "./copy";
import type { Cells as Table } from "./data";
import { Term } from "./terms";
import { visible } from "./text";

// A table that is a list of cards where it is narrow. The roles are said, since a card's style would take them away.
// `wraps` breaks a line before an interval, never in it, so that more columns have room; a table that is `exact` has none.
export function Cells({ table, caption, wraps, exact }: { table: Table | null; caption: string; wraps?: boolean; exact?: boolean }) {
  if (!table) return null;
  return (
    <div class="pasteable">
      <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
        <table class={wraps ? "means wraps" : "means"} role="table">
          <caption role="caption">{caption}{!exact && <>, with <Term>95% intervals</Term></>}</caption>
          <thead role="rowgroup"><tr role="row">{table.head.map((cell) => <th scope="col" role="columnheader"><Term>{cell}</Term></th>)}</tr></thead>
          <tbody role="rowgroup">
            {table.rows.map((row) => (
              <tr role="row">
                {row.map((cell, i) => (i
                  ? <td role="cell"><span class="name" aria-hidden="true">{table.head[i]}</span>{wraps ? visible(cell).replace(/, (?=[^[]*\]$)/, ",\u00a0") : visible(cell)}</td>
                  : <th scope="row" role="rowheader">{visible(cell)}</th>))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Copy of={caption} table={() => table} />
    </div>
  );
}
