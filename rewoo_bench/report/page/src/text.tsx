// Text of models, tools and data sets: always text nodes, with hidden characters made visible.

import { useState } from "preact/hooks";

// Controls but for tab and line feed, marks of direction, zero-width characters, halves of surrogate pairs.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;
const LONGEST = 1500;

export function visible(text: string): string {
  return text.replace(HIDDEN, (c) => (c === "\r" ? "" : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`));
}

// `marked` are words that are shown as marked, wherever they stand.
export function Text({ children, class: name, marked }: { children: string; class?: string; marked?: string | null }) {
  const [whole, setWhole] = useState(false);
  const long = children.length > LONGEST;
  const shown = long && !whole ? children.slice(0, LONGEST) : children;
  return (
    <span class={`text ${name ?? ""}`}>
      {marked ? shown.split(marked).map((part, i) => <>{i > 0 && <mark>{visible(marked)}</mark>}{visible(part)}</>) : visible(shown)}
      {long && (
        <button type="button" class="more" onClick={() => setWhole(!whole)}>
          {whole ? "show less" : `show all ${children.length.toLocaleString("en")} characters`}
        </button>
      )}
    </span>
  );
}

export const number = (value: number | null | undefined, digits = 0): string =>
  value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });

// Seconds: with more digits the fewer they are.
export const seconds = (value: number | null | undefined): string =>
  value === null || value === undefined ? "–" : value < 0.1 ? String(Number(value.toPrecision(1))) : number(value, value < 100 ? 1 : 0);

export const dollars = (value: number): string => `$${value === 0 ? "0" : value.toFixed(Math.max(2, 2 - Math.floor(Math.log10(value))))}`;

// A count with its noun, in the singular for one: "1 call", "2 calls".
export const counted = (value: number | null | undefined, noun: string): string => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;

export const OUTCOMES: Record<string, { mark: string; word: string }> = {
  r: { mark: "✓", word: "right" },
  w: { mark: "✗", word: "wrong" },
  f: { mark: "!", word: "failed" },
  u: { mark: "?", word: "not scored" },
  "-": { mark: "·", word: "not asked" },
};

export function Outcome({ code, stop }: { code: string; stop?: string | null }) {
  const { mark, word } = OUTCOMES[code] ?? OUTCOMES["-"]!;
  const why = stop && stop !== "answered" && code !== "f" ? ` (${stop})` : "";
  return (
    <span class={`outcome ${word.replace(" ", "-")}`} title={word + why}>
      <span aria-hidden="true">{mark}</span>
      <span class="sr">{word + why}</span>
    </span>
  );
}

// Words of the answer that the gold answers have, too: what F1 counts.
const plain = (word: string) => word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");

export function Matched({ text, gold }: { text: string; gold: string[] }) {
  const known = new Set(gold.flatMap((each) => each.split(/\s+/).map(plain)).filter((w) => w && !["a", "an", "the"].includes(w)));
  return (
    <span class="text">
      {visible(text.slice(0, 2000)).split(/(\s+)/).map((word) => (known.has(plain(word)) ? <mark>{word}</mark> : word))}
    </span>
  );
}
