// The rows of some trajectories of a question, as `beside` in rewoo_bench/report/alignment.py has them.

import type { Block, Step, Trajectory } from "./data";

export type Cell = { step: Step } | { block: Block } | null;
export type Cells = Cell[];

// The number of the look-up at which trajectories part, in their order, from 1; 0 where they never do. One that looked
// nothing up isn't compared.
export function firstDivergence(every: number[][]): number {
  const paths = every.filter((path) => path.length);
  const most = Math.max(0, ...paths.map((path) => path.length));
  for (let i = 0; i < most; i++) if (new Set(paths.map((path) => path[i])).size > 1) return i + 1;
  return 0;
}

export interface Rows { above: Cells[]; below: Cells[]; said: string } // said: where they part, empty where they never do

export function rowsOf(trajectories: Trajectory[]): Rows {
  const at = firstDivergence(trajectories.map(({ path }) => path));
  const ends = trajectories.map(({ rows, path }) => (at > 1 ? rows.indexOf(path[at - 2]!) + 1 : 0));
  return {
    above: section(trajectories, ends.map((end) => [0, end])),
    below: section(trajectories, trajectories.map(({ steps }, i) => [ends[i]!, steps.length + 1])),
    said: at ? sentence(trajectories, at) : "",
  };
}

function section(trajectories: Trajectory[], parts: [number, number][]): Cells[] {
  const order: number[] = [];
  const rows = new Map<number, Cells>();
  const empty = (): Cells => trajectories.map(() => null);
  trajectories.forEach((own, number) => {
    let after = -1;
    for (let i = parts[number]![0]; i < Math.min(parts[number]![1], own.steps.length); i++) {
      const row = own.rows[i]!;
      if (!rows.has(row)) {
        order.splice(after + 1, 0, row);
        rows.set(row, empty());
      }
      after = order.indexOf(row);
      rows.get(row)![number] = { step: own.steps[i]! };
    }
  });
  const shown = order.map((row) => rows.get(row)!);
  trajectories.forEach((own, number) => {
    const [first, end] = parts[number]!;
    for (const block of own.blocks) {
      if (block.at < first || block.at >= end) continue;
      const made = new Set(own.steps.slice(block.at, Math.min(Math.max(block.end, block.at + 1), end)));
      const found = shown.findIndex((cells) => { const cell = cells[number]; return cell && "step" in cell && made.has(cell.step); });
      const place = found < 0 ? shown.length : found;
      const before = shown[place - 1];
      if (before && !before[number] && before.every((cell) => !cell || "block" in cell)) before[number] = { block };
      else shown.splice(place, 0, trajectories.map((_, i) => (i === number ? { block } : null)));
    }
  });
  return shown;
}

const NAME = 60; // characters of a look-up in a sentence

function sentence(trajectories: Trajectory[], at: number): string {
  const names = trajectories.filter(({ path }) => path.length).map(({ steps, rows, path }) => {
    const step = path.length >= at ? steps[rows.indexOf(path[at - 1]!)] : undefined;
    const name = (step?.argument || step?.tool || "").split(/\s+/).filter(Boolean).join(" ");
    return step ? (name.length > NAME ? `${name.slice(0, NAME)} …` : name) : "no further look-up";
  });
  const when = at === 1 ? "at their first look-up" : `after ${at - 1} shared look-up${at === 2 ? "" : "s"}`;
  return `They part ${when}: ${names.join(" | ")}`;
}
