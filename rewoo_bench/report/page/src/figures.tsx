// Figures drawn from the data in the page, in the page's own colours.

import type { Overview, Point, System, Table } from "./data";
import { counted, number, visible } from "./text";
import { Term } from "./terms";
import { useWidth } from "./width";

const LINE = 26, DOTS = 300; // pixels of a system's line; dots of a system

interface Scale { at: (value: number) => number; ticks: number[] }

export function linear(most: number, width: number): Scale {
  const rough = most / Math.max(2, width / 90), unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * unit).find((s) => s >= rough) ?? unit;
  return { at: (value) => (value / most) * width, ticks: Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step) };
}

const FACTORS = [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7]]; // of ticks, within a power of ten

function logarithmic(values: number[], width: number): Scale {
  const low = Math.min(...values) / 1.25, high = Math.max(...values) * 1.25;
  const at = (value: number) => (Math.log(value / low) / Math.log(high / low)) * width;
  const inside = (tick: number) => tick >= low && tick <= high;
  const powers = Array.from({ length: Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) + 1 }, (_, i) => 10 ** (Math.floor(Math.log10(low)) + i));
  const choices = FACTORS.map((factors) => powers.flatMap((power) => factors.map((factor) => factor * power)).filter(inside));
  const even = linear(high - low, 270), step = even.ticks[1] ?? high; // for values that are close to each other
  return { at, ticks: choices.find((ticks) => ticks.length > 2) ?? Array.from({ length: 9 }, (_, i) => (Math.ceil(low / step) + i) * step).filter(inside) };
}

const plain = (value: number) => (value >= 1 || value === 0 ? number(value, value < 10 && value % 1 ? 1 : 0) : String(Number(value.toPrecision(3))));

function Axis({ scale, height, width }: { scale: Scale; height: number; width: number }) {
  return (
    <g class="axis">
      {scale.ticks.map((tick) => {
        const x = scale.at(tick);
        return <g><line x1={x} x2={x} y1={0} y2={height} /><text x={x} y={height + 14} text-anchor={x > width - 20 ? "end" : x < 12 ? "start" : "middle"}>{plain(tick)}</text></g>;
      })}
    </g>
  );
}

// A line for each system: its name, and what is drawn of it on the common axis.
function Lines({ title, unit, labels, width, scale, says, draw }: {
  title: string; unit: string; labels: string[]; width: number; scale: Scale; says: string; draw: (i: number) => preact.ComponentChildren;
}) {
  const height = labels.length * LINE * 1.7;
  return (
    <figure class="plot">
      <figcaption><b>{title}</b> {unit}</figcaption>
      <svg width={width} height={height + 20} role="img" aria-label={`${title} ${unit}: ${visible(says)}`}>
        <Axis scale={scale} height={height} width={width} />
        {labels.map((label, i) => (
          <g transform={`translate(0 ${i * LINE * 1.7})`}>
            <text class="name" x={2} y={13}>{visible(label).slice(0, Math.floor(width / 7))}</text>
            <g transform="translate(0 18)">{draw(i)}</g>
          </g>
        ))}
      </svg>
    </figure>
  );
}

function Parts({ points, width }: { points: Point[]; width: number }) {
  const scale = linear(Math.max(...points.map((p) => p.tokens!)), width);
  return (
    <Lines title="Tokens of a question" unit="mean: input, cached input (shaded), output" labels={points.map((p) => p.label)} width={width} scale={scale}
      says={points.map((p) => `${p.label} ${number(p.tokens)}, ${number(p.cached)} of them cached`).join("; ")}
      draw={(i) => {
        const p = points[i]!, fresh = scale.at(p.input ?? 0), cached = scale.at(p.cached ?? 0);
        return (
          <>
            <rect class="part question" x={0} y={0} width={fresh} height={16} />
            <rect class="part question" x={fresh} y={0} width={cached} height={16} /><rect class="cached" x={fresh} y={0} width={cached} height={16} />
            <rect class="part output" x={fresh + cached} y={0} width={scale.at(p.output ?? 0)} height={16} />
          </>
        );
      }} />
  );
}

function Spread({ systems, width }: { systems: { label: string; tokens: number[] }[]; width: number }) {
  const scale = logarithmic(systems.flatMap(({ tokens }) => tokens), width);
  const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
  return (
    <Lines title="Tokens of each question" unit="a dot a question, a bar at the median; logarithmic" labels={systems.map(({ label }) => label)} width={width}
      scale={scale} says={systems.map(({ label, tokens }) => `${label} median ${number(median(tokens))} of ${counted(tokens.length, "question")}`).join("; ")}
      draw={(i) => {
        const { tokens } = systems[i]!, step = Math.max(1, tokens.length / DOTS);
        const drawn = Array.from({ length: Math.min(DOTS, tokens.length) }, (_, j) => tokens[Math.floor(j * step)]!);
        const x = scale.at(median(tokens));
        return <>{drawn.map((value, j) => <circle class="dot" cx={scale.at(value)} cy={2 + ((j * 7) % 13)} r={2.2} />)}<line class="median" x1={x} x2={x} y1={-1} y2={17} /></>;
      }} />
  );
}

// A system's mark: its colour and its form are its own, so that marks which lie on each other can be told apart.
function Mark({ i, x, y }: { i: number; x: number; y: number }) {
  const forms = ["M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0", "M-4.5 -4.5h9v9h-9z", "M0 -6.5L6.5 0L0 6.5L-6.5 0z", "M0 -6L6 5H-6z"];
  return <path class={`mark series-${i % 5}`} d={forms[i % forms.length]!} transform={`translate(${x} ${y})`} />;
}

// Exact match with its interval over what a question takes, tokens or dollars.
function Trade({ points, of, title, score, unit, width }: { points: Point[]; of: "tokens" | "cost"; title: string; score: string; unit: string; width: number }) {
  const height = 190, left = 30;
  const scale = logarithmic(points.map((p) => p[of]!), width - left);
  const most = Math.min(1, Math.max(...points.map((p) => p.high!)) * 1.08);
  const y = (value: number) => height - (value / most) * height;
  const says = (p: Point) => `${number(p.em, 2)} for ${plain(p[of]!)}`;
  return (
    <figure class="plot">
      <figcaption><b>{title}</b> <Term>{score}</Term> with 95% interval, over {unit}</figcaption>
      <svg width={width} height={height + 20} role="img" aria-label={`${title}: ${visible(points.map((p) => `${p.label} ${says(p)} ${unit}`).join("; "))}`}>
        <g transform={`translate(${left} 0)`}>
          <Axis scale={scale} height={height} width={width - left} />
          {linear(most, height * 1.6).ticks.map((tick) => <g class="axis"><line x1={0} x2={width - left} y1={y(tick)} y2={y(tick)} /><text x={-4} y={y(tick) + 4} text-anchor="end">{plain(tick)}</text></g>)}
          {points.map((p, i) => <line class={`bar series-${i % 5}`} x1={scale.at(p[of]!)} x2={scale.at(p[of]!)} y1={y(p.low!)} y2={y(p.high!)} />)}
          {points.map((p, i) => <Mark i={i} x={scale.at(p[of]!)} y={y(p.em!)} />)}
        </g>
      </svg>
      <ul class="key" style={{ maxWidth: `${width}px` }} aria-hidden="true">
        {points.map((p, i) => <li><svg width={14} height={14}><Mark i={i} x={7} y={7} /></svg> {visible(p.label)} <span class="muted">{says(p)}</span></li>)}
      </ul>
    </figure>
  );
}

// Those of `rewoo-bench plot` where the page was written with them.
export function Figures({ head, table }: { head: Overview; table: Table }) {
  const window = useWidth(), score = head.checked ? "solved" : "EM";
  const room = Math.min(window, 1500) - Math.max(20, Math.min(64, window * 0.04)) - 8;
  const width = room < 620 ? room : Math.min(460, (room - 20) / 2);
  const counted = head.points.filter((p) => p.tokens);
  const scored = counted.filter((p) => p.em !== undefined && p.low !== undefined && p.high !== undefined);
  const priced = scored.filter((p) => p.cost);
  const systems = table.systems.map((system: System) => ({ label: system.label, tokens: system.tokens.filter((t, i): t is number => !!t && system.outcome[i] !== "f") }))
    .filter(({ tokens }) => tokens.length);
  if (head.figures.length) {
    return (
      <details>
        <summary>Figures ({head.figures.length})</summary>
        <div class="figures">{head.figures.map((figure) => <figure><img src={figure.src} alt={visible(figure.alt)} /></figure>)}</div>
      </details>
    );
  }
  if (!counted.length) return null;
  return (
    <details class="drawn">
      <summary>Figures</summary>
      <div class="plots">
        {scored.length > 1 && <Trade points={scored} of="tokens" title="What accuracy takes" score={score} unit="tokens a question" width={width} />}
        {priced.length > 1 && <Trade points={priced} of="cost" title="What accuracy costs" score={score} unit="dollars a question" width={width} />}
        <Parts points={counted} width={width} />
        {systems.length > 0 && <Spread systems={systems} width={width} />}
      </div>
    </details>
  );
}
