// Filters, counts and orders of the table of questions.

import type { System, Table } from "./data";
import { firstDivergence } from "./rows";
import type { State } from "./state";

export interface Filter { value: string; label: string; count: number }

// Filters by outcome of the systems shown, with the number of lines of each: with two systems shown, the two "only"
// counts are McNemar's discordant counts.
export function filters(table: Table, systems: System[]): Filter[] {
  const n = table.ids.length;
  const counts = new Map<string, number>();
  const add = (key: string) => counts.set(key, (counts.get(key) ?? 0) + 1);
  for (let i = 0; i < n; i++) for (const key of patterns(systems, i)) add(key);
  const all: Filter[] = [{ value: "", label: "all", count: n }];
  const named: [string, string][] = [
    ...(systems.length > 1 ? systems : []).map((s): [string, string] => [`only:${s.label}`, `only ${s.label} right`]),
    ["right", "all right"], ["wrong", "all wrong"], ["differ", "outcomes differ"], ["failed", "any failed"], ["unscored", "any not scored"],
  ];
  for (const [value, label] of named) if (counts.has(value) || value.startsWith("only:")) all.push({ value, label, count: counts.get(value) ?? 0 });
  return all;
}

export function patterns(systems: System[], line: number): string[] {
  const codes = systems.map((s) => s.outcome[line] ?? "-").map((c, i) => [c, i] as const).filter(([c]) => c !== "-");
  if (!codes.length) return [];
  if (codes.some(([c]) => c === "f")) return ["failed"]; // in no pair's counts
  if (codes.some(([c]) => c === "u")) return ["unscored"]; // no gold answer
  const right = codes.filter(([c]) => c === "r");
  if (right.length === codes.length) return ["right"];
  if (!right.length) return ["wrong"];
  const keys = ["differ"];
  if (right.length === 1) keys.push(`only:${systems[right[0]![1]]!.label}`);
  return keys;
}

const folded = new WeakMap<Table, string[]>();

// What the search field looks in: question, answers and predictions.
function searchable(table: Table): string[] {
  let texts = folded.get(table);
  if (!texts) {
    texts = table.ids.map((id, i) =>
      [id, table.questions[i], ...(table.answers[i] ?? []), ...table.systems.map((s) => s.prediction[i] ?? "")].join("\n").toLowerCase());
    folded.set(table, texts);
  }
  return texts;
}

export function lines(table: Table, systems: System[], state: State): number[] {
  const chosen: number[] = [];
  const find = state.find.toLowerCase().trim();
  const texts = find ? searchable(table) : [];
  for (let i = 0; i < table.ids.length; i++) {
    if (state.show && !patterns(systems, i).includes(state.show)) continue;
    if (state.type && table.types[i] !== state.type) continue;
    if (state.part && partsAt(pathsOf(systems, i)) !== state.part) continue;
    if (state.stop && !systems.some((s) => s.stop[i] === state.stop)) continue;
    if (find && !texts[i]!.includes(find)) continue;
    chosen.push(i);
  }
  return sorted(table, chosen, state.sort);
}

const pathsOf = (systems: System[], line: number) => systems.flatMap((s) => (s.paths?.[line] ? [s.paths[line]] : []));

// The number of the look-up at which trajectories part, in their order, or "never"; empty for fewer than two.
export function partsAt(paths: number[][]): string {
  if (paths.length < 2) return "";
  return String(firstDivergence(paths) || "never");
}

// Where the systems shown part, each way once.
export function parting(table: Table, systems: System[]): string[] {
  const found = new Set(table.ids.map((_, i) => partsAt(pathsOf(systems, i))));
  found.delete("");
  return [...found].sort((a, b) => (Number(a) || Infinity) - (Number(b) || Infinity));
}

function sorted(table: Table, chosen: number[], sort: string): number[] {
  if (!sort) return chosen;
  const down = sort.startsWith("-");
  const [kind, which] = sort.replace(/^-/, "").split(":") as [string, string?];
  const system = table.systems[Number(which)];
  const value = (i: number): string | number | null => {
    if (kind === "id") return table.ids[i] ?? "";
    if (kind === "type") return table.types[i] ?? "";
    if (kind === "question") return table.questions[i] ?? "";
    if (!system) return null;
    if (kind === "outcome") return "rwfu-".indexOf(system.outcome[i] ?? "-");
    if (kind === "tokens") return system.tokens[i] ?? null;
    if (kind === "calls") return system.calls[i] ?? null;
    return system.latency[i] ?? null;
  };
  const sign = down ? -1 : 1;
  const keys = new Map(chosen.map((i) => [i, value(i)]));
  return [...chosen].sort((a, b) => {
    const x = keys.get(a) ?? null, y = keys.get(b) ?? null;
    if (x === y) return a - b;
    if (x === null) return 1; // nothing known: last, in either direction
    if (y === null) return -1;
    return x < y ? -sign : sign;
  });
}

export function values(table: Table, column: "types" | "stop"): string[] {
  const distinct = new Set<string>();
  if (column === "types") for (const t of table.types) distinct.add(t);
  else for (const s of table.systems) for (const stop of s.stop) if (stop) distinct.add(stop);
  distinct.delete("");
  return [...distinct].sort();
}

const naming = new WeakMap<Table, string[]>();

// The name of a line in links: its id, and what else is needed to tell it from every other line.
export function nameOf(table: Table, line: number): string {
  let names = naming.get(table);
  if (!names) {
    const several = new Set(table.datasets).size > 1;
    names = table.ids.map((id, i) => (several ? `${escaped(table.datasets[i]!)}~` : "") + withTrial(id, table.trials[i] ?? 0));
    naming.set(table, names);
  }
  return names[line]!;
}

// An id that ends like a trial gets one in any case, so that the last ~N is always the trial.
const withTrial = (id: string, trial: number) => (trial || /~\d+$/.test(id) ? `${id}~${trial}` : id);

// A data set's name that ends at the first ~ behind it.
const escaped = (dataset: string) => dataset.replaceAll("%", "%25").replaceAll("~", "%7E");

export function shown(table: Table, state: State): System[] {
  const chosen = table.systems.filter((s) => state.a.includes(s.label));
  return chosen.length ? chosen : table.systems;
}
