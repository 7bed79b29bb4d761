// The field's short words, explained on hover, focus and touch. Every explanation of the page is here.

import { useId, useRef, useState } from "preact/hooks";
import { visible } from "./text";

const TERMS: Record<string, string> = {
  "n": "Number of questions that the figure is about. Questions that failed are in no figure.",
  "exact match": "Share of questions whose answer equals a gold answer, after articles, case and punctuation are removed. EM for short.",
  "EM": "Exact match: share of questions whose answer equals a gold answer, after articles, case and punctuation are removed.",
  "solved": "Share of tasks that the world's check found done.",
  "F1": "Overlap of the answer's words with a gold answer's, from 0 to 1: the harmonic mean of precision and recall.",
  "CI": "Confidence interval: made in this way, 95 of 100 intervals hold the true value.",
  "95% intervals": "Confidence intervals: made in this way, 95 of 100 hold the true value. Shown in square brackets.",
  "answered": "Questions that ended with an answer, right or wrong.",
  "failed": "Questions that the infrastructure failed, such as a provider's error. They are in no mean.",
  "empty_answer": "Questions that ended with an empty answer.",
  "length_limit": "Questions that ended because a reply reached the limit of its output tokens.",
  "reasoning_truncated": "Questions that ended because a reply was cut while the model was still thinking.",
  "step_limit": "Questions that reached the limit of steps. They have an answer only where the architecture asks for one at the limit.",
  "repeated": "Questions that the repeat guard ended because their turns repeated themselves.",
  "in loops": "Questions whose steps repeat themselves until the end.",
  "invalid_plan": "Questions that ended because no valid plan was written.",
  "unparsable": "Questions that ended because a reply couldn't be read: it isn't in the form that the architecture expects.",
  "token_limit": "Questions that reached the limit of tokens without an answer.",
  "time_limit": "Questions that reached the limit of time without an answer.",
  "cost_limit": "Questions that reached the limit of dollars without an answer.",
  "agent_failed": "Questions on which an external agent crashed. They count as wrong.",
  "reproduced": "The whole 95% interval is in the band that the claim is tested by.",
  "not tested at this scale": "Only models with fewer than 1B parameters ran it. They don't keep to the formats of agents.",
  "contradicted": "The whole 95% interval is outside the band that the claim is tested by.",
  "undecided": "The 95% interval holds values that agree with the claim and values that don't.",
  "by construction": "Made true or false by the design of the architecture or of the measure. Not counted as reproduced or contradicted.",
  "tokens": "Input and output tokens of a question, all calls together, cached input included.",
  "$ / 1000": "Dollars for 1,000 questions at the model's prices. Unknown where a price isn't known.",
  "changes state": "The call of this step has changed something: its tool is one that says so of itself.",
  "attacker's text": "The result of this step shows what an attacker has written.",
  "attacker's call": "A call with a value of the attacker's that no plan made before his text was read has.",
  "attacker's value": "A planned call in which a value of the attacker's stands.",
  "attacker's words": "The answer has words that the attacker asked for.",
  "LLM calls": "Calls of a language model for one question.",
  "tool calls": "Calls of tools, such as a search, for one question.",
  "p50 s": "Median of the seconds that a question took: half of the questions took less. Waiting for a start isn't in it.",
  "p50": "The median: half of the values are below it.",
  "p95": "95 of 100 values are below it.",
  "p95 s": "95 of 100 questions took no longer. Waiting for a start isn't in it.",
  "start-up s": "Mean of the seconds that a question waited for something to start, such as an agent's process. They are in no other time.",
  "Holm": "Holm's adjustment of p values for the number of tests: with more tests, chance finds more.",
  "McNemar": "Test of two systems on the same questions: it looks at those that one alone has right.",
  "p": "p value: how often chance alone would make a difference at least as large.",
  "cached": "Input tokens that the provider had from an earlier call, which cost less as a rule.",
  "oracle": "A stand-in for a model that is told the answers: it measures costs without a model's errors.",
};

// Longer terms first, so that "p50 s" isn't read as "p50". Alone, n and p are letters of any text.
const INSIDE = Object.keys(TERMS).filter((term) => /^(EM|F1|CI|p50|p95|Holm|McNemar|exact match)$/.test(term));
const PATTERN = new RegExp(`\\b(${INSIDE.sort((a, b) => b.length - a.length).join("|")})\\b`);

// A word with an explanation. The bubble has a place in the window, so that no scrolling box cuts it.
export function Term({ children, says }: { children: string; says?: string }) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const [place, setPlace] = useState<{ left: string; top: string } | null>(null);
  const text = says ?? TERMS[children];
  if (!text) return <>{visible(children)}</>;
  const open = () => {
    const box = button.current!.getBoundingClientRect();
    const width = Math.min(288, innerWidth - 16);
    setPlace({ left: `${Math.max(8, Math.min(box.left, innerWidth - width - 8))}px`, top: `${box.bottom + 4}px` });
  };
  const close = () => setPlace(null);
  return (
    <>
      <button type="button" class="term" ref={button} aria-describedby={id} onPointerEnter={open} onPointerLeave={close} onFocus={open}
        onBlur={close} onClick={(event) => { event.stopPropagation(); open(); }}
        onKeyDown={(event) => { if (event.key === "Escape" && place) { close(); event.stopPropagation(); } }}>{visible(children)}</button>
      <span role="tooltip" id={id} class={place ? "tip" : "tip closed"} style={place ?? {}}>{text}</span>
    </>
  );
}

// A text with its first use of each known term explained.
export function Explained({ children }: { children: string }) {
  const seen = new Set<string>();
  return (
    <>
      {children.split(PATTERN).map((part, i) => {
        if (i % 2 === 0 || seen.has(part)) return visible(part);
        seen.add(part);
        return <Term key={i}>{part}</Term>;
      })}
    </>
  );
}
