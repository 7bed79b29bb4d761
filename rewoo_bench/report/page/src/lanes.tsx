// Where a question's time and tokens went: its calls on one axis for all systems.

import type { Call, Trajectory } from "./data";
import { counted, number, seconds, visible } from "./text";
import { NARROW, useWidth } from "./width";

const BAR = 15, GAP = 3;

// Pixels of an axis: as much as there is room for.
function useRoom(): number {
  const width = useWidth();
  return width < NARROW ? width - 32 : Math.min(1000, width - 250);
}

const PARTS = ["context", "exemplar", "question", "written", "found"] as const;
const NAMES: Record<string, string> = {
  context: "instructions", exemplar: "exemplars", question: "question", written: "written by the model", found: "observations and evidence", output: "output",
};

interface Lane { label: string; trajectory: Trajectory }

// Calls that overlap are in rows above each other.
export function packed(calls: Call[]): { call: Call; row: number }[] {
  const ends: number[] = [];
  return calls.filter((call) => call.start_s !== undefined && call.latency_s !== undefined)
    .sort((a, b) => a.start_s! - b.start_s!)
    .map((call) => {
      let row = ends.findIndex((end) => end <= call.start_s! + 1e-4);
      if (row < 0) row = ends.push(0) - 1;
      ends[row] = call.start_s! + call.latency_s!;
      return { call, row };
    });
}

const nice = (most: number) => {
  const step = 10 ** Math.floor(Math.log10(Math.max(most, 1e-6) / 4));
  const unit = [1, 2, 5, 10].map((f) => f * step).find((s) => most / s <= 6) ?? step * 10;
  return { ticks: Array.from({ length: Math.floor(most / unit) + 1 }, (_, i) => i * unit), digits: Math.max(0, -Math.floor(Math.log10(unit) + 1e-9)) };
};

function Axis({ most, height, unit, width }: { most: number; height: number; unit: string; width: number }) {
  const { ticks, digits } = nice(most);
  return (
    <g class="axis">
      {ticks.map((tick) => {
        const x = (tick / most) * width;
        return <g><line x1={x} x2={x} y1={0} y2={height} /><text x={x} y={height + 13} text-anchor={x > width - 30 ? "end" : x < 30 ? "start" : "middle"}>{number(tick, tick ? digits : 0)}{tick === 0 ? ` ${unit}` : ""}</text></g>;
      })}
    </g>
  );
}

export function TimeLanes({ lanes }: { lanes: Lane[] }) {
  const room = useRoom();
  const all = lanes.map(({ label, trajectory }) => ({ label, bars: packed(trajectory.calls) })).filter(({ bars }) => bars.length);
  const most = Math.max(...all.flatMap(({ bars }) => bars.map(({ call }) => call.start_s! + call.latency_s!)), 0);
  if (!(most > 0)) return null;
  return (
    <figure class="lanes">
      <figcaption>Time in seconds: a bar a call, waiting hatched. Hover or focus for details.</figcaption>
      {all.map(({ label, bars }) => {
        const rows = Math.max(1, ...bars.map(({ row }) => row + 1));
        const height = rows * (BAR + GAP);
        return (
          <div class="lane">
            <span class="label">{visible(label)}</span>
            <div class="scroll">
              <svg width={room} height={height + 18} role="img" aria-label={`${label}: ${counted(bars.length, "call")} in ${seconds(most)} seconds`}>
                <defs><pattern id="waiting" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="5" /></pattern></defs>
                <Axis most={most} height={height} unit="s" width={room} />
                {bars.map(({ call, row }) => {
                  const x = (call.start_s! / most) * room, width = Math.max(1.5, (call.latency_s! / most) * room);
                  const waiting = Math.min(width, ((call.waiting_s ?? 0) / most) * room);
                  return (
                    <g>
                      <title>{describe(call)}</title>
                      <rect class={`call ${call.kind}${call.status === "error" ? " error" : ""}`} x={x} y={row * (BAR + GAP)} width={width} height={BAR} />
                      {waiting > 0 && <rect class="waits" x={x} y={row * (BAR + GAP)} width={waiting} height={BAR} />}
                    </g>
                  );
                })}
              </svg>
            </div>
          </div>
        );
      })}
    </figure>
  );
}

export function TokenLanes({ lanes }: { lanes: Lane[] }) {
  const room = useRoom();
  const all = lanes.map(({ label, trajectory }) => ({ label, calls: trajectory.calls.filter((call) => call.kind === "model") }));
  const total = (call: Call) => (call.input_tokens ?? 0) + (call.output_tokens ?? 0);
  const most = Math.max(...all.map(({ calls }) => calls.reduce((sum, call) => sum + total(call), 0)), 0);
  if (!(most > 0)) return null;
  return (
    <figure class="lanes">
      <figcaption>
        Tokens: a block a model call, its prompt by parts, cached input shaded.{" "}
        {[...PARTS, "output"].map((part) => <span class="key"><i class={`swatch ${part}`} /> {NAMES[part]}</span>)}
      </figcaption>
      {all.map(({ label, calls }) => {
        let at = 0;
        return (
          <div class="lane">
            <span class="label">{visible(label)}</span>
            <div class="scroll">
              <svg width={room} height={BAR + 24} role="img" aria-label={`${label}: ${number(calls.reduce((sum, call) => sum + total(call), 0))} tokens in ${counted(calls.length, "model call")}`}>
                <Axis most={most} height={BAR + 6} unit="tokens" width={room} />
                {calls.map((call) => {
                  const start = at;
                  at += total(call);
                  return <g><title>{describe(call)}</title>{blocks(call, start, room / most)}</g>;
                })}
              </svg>
            </div>
          </div>
        );
      })}
    </figure>
  );
}

function blocks(call: Call, start: number, scale: number) {
  const parts = PARTS.map((part) => [part, call[`${part}_tokens`] ?? 0] as const);
  const counted = parts.reduce((sum, [, n]) => sum + n, 0);
  const input = call.input_tokens ?? 0;
  let at = start;
  const shapes = (counted ? parts : ([["context", input]] as const)).map(([part, n]) => {
    const width = (counted ? (n / counted) * input : n) * scale; // the tokenizer's parts, on the provider's count
    const x = at * scale;
    at += width / scale;
    return <rect class={`part ${part}`} x={x} y={3} width={Math.max(0, width)} height={BAR} />;
  });
  const cached = (call.cached_input_tokens ?? 0) * scale;
  return [
    ...shapes,
    cached > 0 ? <rect class="cached" x={start * scale} y={3} width={cached} height={BAR} /> : null,
    <rect class="part output" x={(start + input) * scale} y={3} width={(call.output_tokens ?? 0) * scale} height={BAR} />,
    <line class="between" x1={start * scale} x2={start * scale} y1={0} y2={BAR + 6} />,
  ];
}

function describe(call: Call): string {
  const what = call.kind === "model" ? `${call.role || "model"}${call.place ? ` at ${call.place}` : ""}` : `${call.name}${call.place ? ` at ${call.place}` : ""}`;
  const tokens = call.kind === "model" ? `, ${number(call.input_tokens)} tokens in (${number(call.cached_input_tokens)} cached), ${number(call.output_tokens)} out` : "";
  const time = call.latency_s !== undefined ? `, ${seconds(call.latency_s)} s` : "";
  const changed = call.changes_state && (call.status === "ok" || call.status === "empty") ? ", changes state" : "";
  const tries = (call.attempts ?? 1) > 1 ? `, ${call.attempts} attempts` : "";
  return visible(`${what}${changed}${tokens}${time}${tries}${call.status && call.status !== "ok" ? `, ${call.status}` : ""}${call.replayed ? ", replayed" : ""}`);
}
