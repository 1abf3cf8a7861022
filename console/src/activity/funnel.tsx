/** The number of prospects with each status, in the order of the company's statuses. */
import { Link } from "wouter";
import { withFilter } from "../prospects/filter.ts";
import { NO_STATUS, StatusMark } from "../ui/badge.tsx";
import { Bars } from "../ui/bars.tsx";
import { Panel } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
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
          const bars = statuses.map((status) => ({
            key: status.id,
            label: (
              <Link href={withFilter("/prospects", { status: status.value })}>
                <StatusMark status={status} />
              </Link>
            ),
            color: status.color,
            count: status.count,
          }));
          const others = { key: 0, label: "No status, or another", color: NO_STATUS, count: rest };
          return <Bars label="Prospects by status" bars={rest > 0 ? [...bars, others] : bars} total={total} />;
        }}
      </Answer>
    </Panel>
  );
}
