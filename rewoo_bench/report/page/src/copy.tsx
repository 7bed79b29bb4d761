// A table to paste: exactly the cells that are shown, as Markdown, LaTeX or CSV.

import { useState } from "preact/hooks";
import type { Cells } from "./data";
import { visible } from "./text";

export const FORMATS = ["Markdown", "LaTeX", "CSV"] as const;

const NUMBER = /^[-~$<]?\d[\d,.]*/;
const LATEX: Record<string, string> = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };

export function pasted({ head, rows }: Pick<Cells, "head" | "rows">, format: (typeof FORMATS)[number]): string {
  const all = [head, ...rows].map((row) => row.map((cell) => visible(cell).replace(/\s+/g, " ")));
  const right = head.map((_, i) => i > 0 && rows.some((row) => NUMBER.test(row[i] ?? "")));
  if (format === "CSV") {
    const plain = (cell: string) => (/^[=+@-]/.test(cell) && !NUMBER.test(cell) ? `'${cell}` : cell); // no spreadsheet's formula
    return all.map((row) => row.map(plain).map((cell) => (/[",]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(",")).join("\n") + "\n";
  }
  if (format === "LaTeX") {
    const lines = all.map((row) => row.map((cell) => cell.replace(/[\\~^]|[&%$#_{}]/g, (c) => LATEX[c] ?? `\\${c}`)).join(" & ") + " \\\\");
    return [`\\begin{tabular}{${right.map((each) => (each ? "r" : "l")).join("")}}`, "\\hline", lines[0], "\\hline", ...lines.slice(1), "\\hline", "\\end{tabular}", ""].join("\n");
  }
  const lines = all.map((row) => `| ${row.map((cell) => cell.replace(/[\\|<>*_`[\]]/g, "\\$&")).join(" | ")} |`);
  return [lines[0], `| ${right.map((each) => (each ? "---:" : "---")).join(" | ")} |`, ...lines.slice(1), ""].join("\n");
}

// Where the browser has no clipboard, or refuses it, the text stands in a field, chosen as a whole.
export function Copy({ of, table }: { of: string; table: () => Pick<Cells, "head" | "rows"> }) {
  const [said, say] = useState("");
  const [text, show] = useState("");
  const copy = async (format: (typeof FORMATS)[number]) => {
    const made = pasted(table(), format);
    try {
      await navigator.clipboard.writeText(made);
      show("");
      say(`copied as ${format}`);
    } catch {
      show(made);
      say(`${format}, to be copied from here`);
    }
  };
  return (
    <div class="copy" role="group" aria-label={`Copy: ${visible(of)}`}>
      Copy as {FORMATS.map((format) => <button type="button" class="link" onClick={() => void copy(format)}>{format}</button>)}
      <span role="status">{said}</span>
      {text && <textarea readOnly rows={6} aria-label={`${visible(of)}, to copy`} value={text} ref={(field) => field?.select()} />}
    </div>
  );
}
