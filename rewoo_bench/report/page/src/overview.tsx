import { Cells } from "./cells";
import { Copy } from "./copy";
import type { Claim, Overview, Table } from "./data";
import { Figures } from "./figures";
import { PlannedLoops, Said, saidOf } from "./planned";
import { go } from "./state";
import { Explained, Term } from "./terms";
import { Text, visible } from "./text";

const FIRST = ["Model", "Questions", "Run", "Progress", "Cluster"]; // facts above the sentences; the others are below

// All questions of these systems, whatever the filters were, with the list in sight.
function showQuestions(a: string[]) {
  go({ a, q: "", show: "", type: "", stop: "", find: "" });
  const list = document.getElementById("questions")!;
  list.scrollIntoView();
  list.focus({ preventScroll: true });
}

const SENTENCES = 4, SYSTEMS = 6; // shown above the questions; where there are more, they are folded

// What was found, and how sure it is: all that stands above the questions.
export function Verdict({ head }: { head: Overview }) {
  const found = head.sentences.filter((s) => s.text);
  const main = head.table && <Cells table={head.table} caption="Means per question" />;
  return (
    <section aria-labelledby="title" class="head">
      <h1 id="title">{visible(head.title)}</h1>
      <Facts facts={head.facts.filter(([name]) => FIRST.includes(name))} />
      <Found sentences={found.slice(0, SENTENCES)} />
      {!found.length && <Said lines={saidOf(head.planned)} />}
      {found.length > SENTENCES && (
        <details><summary>{found.length - SENTENCES} more comparisons</summary><Found sentences={found.slice(SENTENCES)} /></details>
      )}
      {head.notes.map((note) => <p class="warning" role="note"><Explained>{note}</Explained></p>)}
      {head.threats.length > 0 && (
        <details class="threats">
          <summary>Caveats <span class="muted">{head.threats.map(begins).join(" · ")}</span></summary>
          <ul>{head.threats.map((threat) => <li><Explained>{threat}</Explained></li>)}</ul>
        </details>
      )}
      {main && (head.table!.rows.length > SYSTEMS ? <details><summary>Means per question of {head.table!.rows.length} systems</summary>{main}</details> : main)}
    </section>
  );
}

// A caveat as far as its first clause goes.
const begins = (text: string) => visible(text).replace(/^\* /, "").split(/[.:;] |[.:;]$/)[0]!;

function Found({ sentences }: { sentences: Overview["sentences"] }) {
  if (!sentences.length) return null;
  return (
    <ul class="sentences">
      {sentences.map((s) => (
        <li>
          <Explained>{s.text}</Explained>{" "}
          {s.a && <button type="button" class="link" onClick={() => showQuestions([s.a, s.b])}>Their questions<span class="sr">: {visible(s.a)} and {visible(s.b)}</span></button>}
        </li>
      ))}
    </ul>
  );
}

// Everything else, folded below the questions.
export function Details({ head, table }: { head: Overview; table: Table }) {
  const facts = head.facts.filter(([name]) => !FIRST.includes(name));
  return (
    <section aria-labelledby="details" class="details">
      <h2 id="details">Details</h2>
      <Folded title="What an attacker's text reached" table={head.attacks} exact />
      <Folded title="How the questions ended" table={head.ends} caption="Scores and ends" />
      <Folded title="Each trial by itself" table={head.trials} exact />
      <Folded title="Seconds of a question" table={head.times} />
      <Figures head={head} table={table} />
      <PlannedLoops loops={head.planned} said={!head.sentences.some((s) => s.text)} />
      {head.claims.length > 0 && <Claims head={head} />}
      <details>
        <summary>The run</summary>
        <Facts facts={facts} />
        {head.manifests.map((manifest) => (
          <pre tabIndex={0} role="region" aria-label="run.json">{visible(JSON.stringify(manifest, null, 1))}</pre>
        ))}
      </details>
    </section>
  );
}

function Folded({ title, table, caption, exact }: { title: string; table: Overview["table"]; caption?: string; exact?: boolean }) {
  return table && <details><summary>{title}</summary><Cells table={table} caption={caption ?? table.caption ?? title} exact={exact} /></details>;
}

function Facts({ facts }: { facts: [string, string][] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => <div><dt>{name}</dt><dd><Text>{value}</Text></dd></div>)}
    </dl>
  );
}

function Claims({ head }: { head: Overview }) {
  return (
    <details>
      <summary>Published claims that this run tests ({head.claims.length})</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label="Claims">
        <table class="claims" role="table">
          <thead role="rowgroup">
            <tr role="row">
              <th scope="col" role="columnheader">claim</th>
              <th scope="col" role="columnheader">measured [95% <Term>CI</Term>]</th>
              <th scope="col" role="columnheader">claimed</th>
              <th scope="col" role="columnheader">verdict</th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            {head.claims.map((claim) => (
              <tr role="row">
                <td role="cell"><ClaimOf claim={claim} /></td>
                <td role="cell" class="measured">{visible(claim.measured)}</td>
                <td role="cell" class="claimed">{visible(claim.claimed)}</td>
                <td role="cell" class={`verdict ${claim.verdict.replaceAll(" ", "-")}`}><Term>{claim.verdict}</Term></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Copy of="Claims" table={() => ({
        head: ["about", "claim", "measured", "claimed", "verdict"],
        rows: head.claims.map((claim) => [claim.about, claim.says, claim.measured, claim.claimed, claim.verdict]),
      })} />
    </details>
  );
}

function ClaimOf({ claim }: { claim: Claim }) {
  return (
    <details>
      <summary><small>{visible(claim.about)}:</small> {visible(claim.says)} <small>({visible(claim.source)})</small></summary>
      <ul>
        <li>{visible(claim.why)}</li>
        {claim.note && <li>{visible(claim.note)}</li>}
        {claim.cited.map((source) => <li>{visible(source)}</li>)}
        {claim.figures.map(([run, model, measured, verdict]) => (
          <li>{visible(run)}, {visible(model)}: {visible(measured)}, {visible(verdict)}</li>
        ))}
      </ul>
    </details>
  );
}
