// A plan as a graph: a column a level, an arrow from each step to those that use its evidence.

import type { PlanStep, Step } from "./data";
import { visible } from "./text";

const WIDTH = 118, HEIGHT = 30, GAP_X = 44, GAP_Y = 12;

export function levels(plan: PlanStep[]): Map<string, number> {
  const level = new Map<string, number>();
  const needs = new Map(plan.map((step) => [step.id, step.depends_on]));
  const of = (id: string, seen: string[]): number => {
    const known = level.get(id);
    if (known !== undefined) return known;
    if (seen.includes(id)) return 0;
    const before = (needs.get(id) ?? []).filter((need) => needs.has(need)).map((need) => of(need, [...seen, id]) + 1);
    const own = Math.max(0, ...before);
    level.set(id, own);
    return own;
  };
  for (const step of plan) of(step.id, []);
  return level;
}

export function PlanGraph({ plan, steps, onStep }: { plan: PlanStep[]; steps: Step[]; onStep: (id: string) => void }) {
  const level = levels(plan);
  const inLevel = new Map<number, number>();
  const places = new Map<string, { x: number; y: number }>();
  for (const step of plan) {
    const column = level.get(step.id) ?? 0;
    const row = inLevel.get(column) ?? 0;
    inLevel.set(column, row + 1);
    places.set(step.id, { x: column * (WIDTH + GAP_X), y: row * (HEIGHT + GAP_Y) });
  }
  const width = (Math.max(0, ...level.values()) + 1) * (WIDTH + GAP_X) - GAP_X;
  const height = Math.max(1, ...inLevel.values()) * (HEIGHT + GAP_Y) - GAP_Y;
  const failed = new Set(steps.filter((step) => step.failed).map((step) => step.id));
  return (
    <div class="scroll plan" tabIndex={0} role="region" aria-label="Plan">
      <svg width={width + 2} height={height + 2} viewBox={`-1 -1 ${width + 2} ${height + 2}`} role="group" aria-label={`Plan with ${plan.length} steps in ${inLevel.size} levels`}>
        {plan.flatMap((step) => step.depends_on.map((need) => {
          const a = places.get(need), b = places.get(step.id);
          if (!a || !b) return null;
          const x1 = a.x + WIDTH, y1 = a.y + HEIGHT / 2, y2 = b.y + HEIGHT / 2, mid = (x1 + b.x) / 2;
          return <path class="edge" d={`M${x1},${y1} C${mid},${y1} ${mid},${y2} ${b.x},${y2}`} />;
        }))}
        {plan.map((step) => {
          const place = places.get(step.id)!;
          return (
            <a href={`#step-${step.id}`} onClick={(event) => { event.preventDefault(); onStep(step.id); }} aria-label={`${step.id} ${step.tool}`}>
              <rect class={failed.has(step.id) ? "node failed" : "node"} x={place.x} y={place.y} width={WIDTH} height={HEIGHT} rx={5} />
              <text class="node-text" x={place.x + 8} y={place.y + 20}>{visible(`${step.id} ${step.tool}`).slice(0, 16)}</text>
            </a>
          );
        })}
      </svg>
    </div>
  );
}
