// What a plan could have had of a loop: of a run in tables and bars, of a trajectory as a graph.

import { useState } from "preact/hooks";
import { Cells } from "./cells";
import type { PlannedCall, PlannedLoop, Trajectory } from "./data";
import { Explained } from "./terms";
import { counted, number, visible } from "./text";

const TABLES = ["What a task takes in the loop, and in each way to plan (×: of the loop's)", "What planners took of such an estimate, where it was measured", "Values of arguments by kind", "Tool calls"];

// What could have been planned of each loop, in sentences: the verdict where nothing else is compared.
export const saidOf = (loops: PlannedLoop[]) =>
  loops.flatMap(({ label, sentences }) => sentences.map((line) => (loops.length > 1 ? `${label}: ${line}` : line)));

export function Said({ lines }: { lines: string[] }) {
  return lines.length ? <ul class="sentences">{lines.map((line) => <li><Explained>{line}</Explained></li>)}</ul> : null;
}

// `said`: the sentences stand above already.
export function PlannedLoops({ loops, said }: { loops: PlannedLoop[]; said: boolean }) {
  if (!loops.length) return null;
  return (
    <details class="planned-loops">
      <summary>What could have been planned</summary>
      {loops.map((loop) => (
        <section aria-label={`What could have been planned: ${visible(loop.label)}`}>
          {loops.length > 1 && <h3>{visible(loop.label)}</h3>}
          {!said && <Said lines={loop.sentences} />}
          {loop.notes.map((note) => <p class="muted">{visible(note.charAt(0).toUpperCase() + note.slice(1))}.</p>)}
          <Cells table={loop.tables[0] ?? null} caption={TABLES[0]!} wraps />
          <Cells table={loop.tables[1] ?? null} caption={TABLES[1]!} exact />
          <p class="muted">{visible(loop.trust.charAt(0).toUpperCase() + loop.trust.slice(1))}.</p>
          <div class="plots">{loop.tables.slice(2).map((table, i) => <Cells table={table} caption={TABLES[i + 2]!} />)}</div>
        </section>
      ))}
    </details>
  );
}

const KINDS = ["known", "copied", "constant", "derived"] as const;
const SAYS = ["said or found before", "out of an earlier result", "the same in most tasks, or nothing", "made up by the model"];
const CHOICES = ["", "after an error", "after an empty result", "chosen otherwise in another trial"];
const HOWS = ["", "", " (one of several items)", " (in a longer text)"];
const LETTERS = "KCKD";
const SHAPES = ["M-7 0a7 7 0 1 0 14 0a7 7 0 1 0 -14 0", "M-7 -7h14v14h-14z", "M-7 0a7 7 0 1 0 14 0a7 7 0 1 0 -14 0", "M0 -9L9 0L0 9L-9 0z"];
const ROW = 30, BOX = 22, CHIP = 19, LANE = 9, INDENT = 16, LETTER = 7; // pixels
const CHIPS = 9; // values drawn in a row; the list below has all

// A kind's mark: its form, its letter and its colour.
function Mark({ kind, x, y }: { kind: number; x: number; y: number }) {
  return (
    <g transform={`translate(${x} ${y})`} class={`value ${KINDS[kind]}`}>
      <path d={SHAPES[kind] ?? ""} />
      <text y={4} text-anchor="middle">{LETTERS[kind]}</text>
    </g>
  );
}

export function PlanKey() {
  return (
    <p class="muted">
      {KINDS.map((kind, i) => <span class="key"><svg width={20} height={20} aria-hidden="true"><Mark kind={i} x={10} y={10} /></svg> {kind}: {SAYS[i]}</span>)}
      <span class="key"><svg width={26} height={18} aria-hidden="true"><rect class="node chosen" x={1} y={1} width={24} height={16} rx={4} /></svg> chosen because of a result</span>
    </p>
  );
}

interface Edge { from: number; to: number; part: boolean; lane: number }

// An edge from each call to those that copy from its result. Those of one call share a lane; lanes don't overlap.
export function edges(calls: PlannedCall[]): Edge[] {
  const ends = new Map<number, number>();
  const found = new Map<string, Edge>();
  calls.forEach((call, to) => call.values.flatMap(([, , , sources]) => sources ?? []).forEach(([from, how]) => {
    if (from >= calls.length) return;
    ends.set(from, Math.max(ends.get(from) ?? 0, to));
    const key = `${from} ${to}`, before = found.get(key);
    found.set(key, { from, to, part: how > 1 && (before?.part ?? true), lane: 0 });
  }));
  const lanes = new Map<number, number>(), free: number[] = []; // the last row of each lane
  for (const [from, end] of [...ends].sort((a, b) => a[0] - b[0])) {
    let lane = free.findIndex((last) => last < from);
    if (lane < 0) lane = free.push(0) - 1;
    free[lane] = end;
    lanes.set(from, lane);
  }
  return [...found.values()].map((edge) => ({ ...edge, lane: lanes.get(edge.from)! }));
}

// The calls in their order, moved right by their depth; a line for each turn of the user.
export function PlanOfLoop({ label, trajectory, onStep }: { label: string; trajectory: Trajectory; onStep: (at: number) => void }) {
  const [picked, pick] = useState(0);
  const calls = trajectory.planned ?? [];
  const arrows = edges(calls);
  const lanes = Math.max(0, ...arrows.map(({ lane }) => lane + 1));
  const left = 6 + lanes * LANE + 10;
  const names = calls.map((call) => visible(trajectory.steps[call.at]?.tool ?? "").slice(0, 26) || "?");
  const rows: number[] = [];
  const turns: number[] = []; // where a line is
  let y = 0;
  calls.forEach((call, i) => {
    if (i && call.segment !== calls[i - 1]!.segment) { turns.push(y); y += 20; }
    rows.push(y);
    y += ROW;
  });
  const x = (call: PlannedCall) => left + Math.min(call.depth - 1, 8) * INDENT;
  const box = (i: number) => names[i]!.length * LETTER + 16;
  const width = Math.max(...calls.map((call, i) => x(call) + box(i) + 14 + (Math.min(call.values.length, CHIPS) + 2) * CHIP));
  const shown = calls[Math.min(picked, calls.length - 1)];
  if (!shown) return null;
  const mid = (i: number) => rows[i]! + ROW / 2;
  return (
    <figure class="plan-of-loop">
      <figcaption>{visible(label)}: {counted(calls.length, "tool call")} in {counted(new Set(calls.map(({ segment }) => segment)).size, "segment")} between the user's turns</figcaption>
      <div class="beside">
        <div class="scroll" tabIndex={0} role="region" aria-label={`Plan graph of ${visible(label)}`}>
          <svg width={width} height={y} role="group" aria-label={`${counted(calls.length, "tool call")}, ${counted(arrows.length, "arrow")} to calls that copy a value`}>
            {turns.map((at) => <g class="turn"><line x1={0} x2={width} y1={at + 10} y2={at + 10} /><text x={left} y={at + 14}>the user speaks</text></g>)}
            {arrows.map(({ from, to, part, lane }) => {
              const at = 6 + (lanes - 1 - lane) * LANE, y1 = mid(from) + 4, y2 = mid(to) - 4, end = x(calls[to]!) - 1;
              return (
                <g class={part ? "edge part" : "edge"}>
                  <path d={`M${x(calls[from]!)},${y1} H${at + 5} Q${at},${y1} ${at},${y1 + 5} V${y2 - 5} Q${at},${y2} ${at + 5},${y2} H${end}`} />
                  <path class="head" d={`M${end},${y2} l-6,-3.5 v7z`} />
                </g>
              );
            })}
            {calls.map((call, i) => {
              const kinds = call.values.map(([, , kind]) => kind);
              const counts = KINDS.map((kind, k) => [kinds.filter((each) => each === k).length, kind] as const).filter(([n]) => n).map(([n, kind]) => `${n} ${kind}`).join(", ");
              const rest = call.values.length - CHIPS + call.more, right = x(call) + box(i);
              const says = `${i + 1}. ${names[i]}: ${counts || "no values"}${call.choice ? `; ${CHOICES[call.choice]}` : ""}`;
              return (
                <g class={shown === call ? "call-row picked" : "call-row"} onClick={() => pick(i)}>
                  <title>{says}</title>
                  <rect class="row" x={0} y={rows[i]} width={width} height={ROW} />
                  <g class="planned-call" role="button" tabindex={0} aria-label={says} aria-pressed={shown === call}
                    onKeyDown={(event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(i); } }}>
                    <rect class={`node${call.choice ? " chosen" : ""}`} x={x(call)} y={rows[i]! + (ROW - BOX) / 2} width={box(i)} height={BOX} rx={4} />
                    <text class="node-text" x={x(call) + 8} y={mid(i) + 4}>{names[i]}</text>
                  </g>
                  <g aria-hidden="true">
                    {call.values.slice(0, CHIPS).map(([path, text, kind], j) => (
                      <g><title>{visible(`${path || "argument"} = ${text}: ${KINDS[kind]}`)}</title><Mark kind={kind} x={right + 16 + j * CHIP} y={mid(i)} /></g>
                    ))}
                    {rest > 0 && <text class="node-text" x={right + 10 + CHIPS * CHIP} y={mid(i) + 4}>+{rest}</text>}
                  </g>
                </g>
              );
            })}
          </svg>
        </div>
        <Values call={shown} position={calls.indexOf(shown)} names={names} onStep={onStep} />
      </div>
    </figure>
  );
}

// The values of a call, each with its kind and where it comes from.
function Values({ call, position, names, onStep }: { call: PlannedCall; position: number; names: string[]; onStep: (at: number) => void }) {
  return (
    <div class="values" aria-live="polite">
      <p>
        <b>{position + 1}. {names[position]}</b>
        {call.choice > 0 && <span class="tag">{CHOICES[call.choice]}</span>}{" "}
        <button type="button" class="link" onClick={() => onStep(call.at)}>Show the step</button>
      </p>
      <ul>
        {call.values.map(([path, text, kind, sources]) => (
          <li>
            <svg width={20} height={20} aria-hidden="true"><Mark kind={kind} x={10} y={10} /></svg>{" "}
            <span class="text">{path && <span class="muted">{visible(path)} = </span>}{visible(text)}</span>{" "}
            <span class="muted">{KINDS[kind]}{sources?.map(([from, how, source], i) => <>{i ? " and" : " from"} {from + 1}. {names[from] ?? ""}{source ? <span class="text">, {visible(source)}</span> : ""}{HOWS[how]}</>)}</span>
          </li>
        ))}
        {call.more > 0 && <li>and {number(call.more)} more</li>}
      </ul>
    </div>
  );
}
