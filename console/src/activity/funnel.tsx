/** The number of prospects with each status, in the order of the company's statuses. The bars repeat what the table says in numbers. */
import { Link } from "wouter";
import { withFilter } from "../prospects/filter.ts";
import { StatusMark } from "../ui/badge.tsx";
import { Panel } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
import { numberText, shareText } from "../ui/text.ts";
import style from "./activity.module.css";
import { useStatusCounts } from "./queries.ts";

export function Funnel() {
  const query = useStatusCounts();
  return (
    <Panel title="Prospects by status">
      <Answer query={query} what="the numbers of prospects">
        {({ total, statuses }) => {
          const counted = statuses.reduce((sum, { count }) => sum + count, 0);
          // `total` and the counts come from different requests. If a prospect changes between them, `counted` may exceed `total`.
          const rest = Math.max(0, total - counted);
          const most = Math.max(1, rest, ...statuses.map(({ count }) => count));
          return (
            <table className={style.funnel} aria-label="Prospects by status">
              <thead>
                <tr>
                  <th>Status</th>
                  <th>Prospects</th>
                  <th>Share</th>
                </tr>
              </thead>
              <tbody>
                {statuses.map((status) => (
                  <tr key={status.id}>
                    <td>
                      <Link href={withFilter("/prospects", { status: status.value })}>
                        <StatusMark status={status} />
                      </Link>
                    </td>
                    <Counts count={status.count} total={total} most={most} />
                  </tr>
                ))}
                {rest > 0 && (
                  <tr>
                    <td>No status, or another</td>
                    <Counts count={rest} total={total} most={most} />
                  </tr>
                )}
              </tbody>
            </table>
          );
        }}
      </Answer>
    </Panel>
  );
}

/** Shows a number of prospects as a bar and as a share of `total`. A count of `most` gets the longest bar, which fills the cell. */
function Counts({ count, total, most }: { count: number; total: number; most: number }) {
  return (
    <>
      <td>{numberText(count)}</td>
      <td>
        <div className={style.share}>
          <svg aria-hidden="true" viewBox="0 0 1 1" preserveAspectRatio="none">
            <rect className={style.column} width={count / most} height="1" />
          </svg>
          <span>{shareText(total === 0 ? 0 : count / total)}</span>
        </div>
      </td>
    </>
  );
}
