/** The legend of the map: what its colours, rings and areas mean. */
import { useStatuses } from "../api/reference.ts";
import { StatusMark } from "../ui/badge.tsx";
import style from "./legend.module.css";

export function Legend() {
  const statuses = useStatuses().data ?? [];
  return (
    <details className={`${style.legend} card`}>
      <summary>Legend</summary>
      <ul className="list stack tight">
        {statuses
          .filter(({ isActive }) => isActive)
          .map((status) => (
            <li key={status.id}>
              <StatusMark status={status} />
            </li>
          ))}
        <li>
          <StatusMark status={null} />
        </li>
      </ul>
      <p className="muted">
        A ring stands for several prospects. It shows their number and the shares of their statuses.
      </p>
      <p className="muted">A coloured area is a territory.</p>
    </details>
  );
}
