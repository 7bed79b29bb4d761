import { Cells } from "./cells";
import type { Claim, Overview, Table } from "./data";
import { Figures } from "./figures";
import { PlannedLoops } from "./planned";
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

export function Head({ head, table }: { head: Overview; table: Table }) {
  return (
    <section aria-labelledby="title" class="head">
      <h1 id="title">{visible(head.title)}</h1>
      <Facts facts={head.facts.filter(([name]) => FIRST.includes(name))} />
      {head.sentences.some((s) => s.text) && (
        <ul class="sentences">
          {head.sentences.filter((s) => s.text).map((s) => (
            <li>
              <Explained>{s.text}</Explained>{" "}
              <button type="button" class="link" onClick={() => showQuestions([s.a, s.b])}>
                Show the questions of {visible(s.a)} and {visible(s.b)}
              </button>
            </li>
          ))}
        </ul>
      )}
      {head.notes.map((note) => <p class="warning" role="note"><Explained>{note}</Explained></p>)}
      {head.threats.length > 0 && (
        <details open class="threats">
          <summary>Caveats</summary>
          <ul>{head.threats.map((threat) => <li><Explained>{threat}</Explained></li>)}</ul>
        </details>
      )}
      <Cells table={head.table} caption="Means per question" />
      {head.attacks && <Cells table={head.attacks} caption={head.attacks.caption} exact />}
      {head.trials && <Cells table={head.trials} caption={head.trials.caption} exact />}
      <Cells table={head.times} caption="Seconds of a question, medians" />
      <Figures head={head} table={table} />
      <PlannedLoops loops={head.planned} />
      {head.figures.length > 0 && (
        <details open>
          <summary>Plots ({head.figures.length})</summary>
          <div class="figures">
            {head.figures.map((figure) => (
              <figure><img src={figure.src} alt={visible(figure.alt)} /></figure>
            ))}
          </div>
        </details>
      )}
      {head.claims.length > 0 && <Claims head={head} />}
      <details>
        <summary>The run</summary>
        <Facts facts={head.facts.filter(([name]) => !FIRST.includes(name))} />
        {head.manifests.map((manifest) => (
          <pre tabIndex={0} role="region" aria-label="run.json">{visible(JSON.stringify(manifest, null, 1))}</pre>
        ))}
      </details>
    </section>
  );
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
                <td role="cell"><Details claim={claim} /></td>
                <td role="cell" class="measured">{visible(claim.measured)}</td>
                <td role="cell" class="claimed">{visible(claim.claimed)}</td>
                <td role="cell" class={`verdict ${claim.verdict.replaceAll(" ", "-")}`}><Term>{claim.verdict}</Term></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function Details({ claim }: { claim: Claim }) {
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
