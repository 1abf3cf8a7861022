/** The columns of the table of prospects. */
import type { ListedProspect } from "canvassing-client/api";
import { nameOf } from "../api/reference.ts";
import { StatusMark } from "../ui/badge.tsx";
import type { Column } from "../ui/data-table.tsx";
import { timeText } from "../ui/text.ts";
import { Time } from "../ui/time.tsx";
import { useFilter } from "./filter.ts";

export const titleOf = ({ name, address, id }: Pick<ListedProspect, "name" | "address" | "id">): string =>
  name ?? address?.formattedAddress ?? `Prospect ${id}`;

function OpenButton({ prospect }: { prospect: ListedProspect }) {
  const { change } = useFilter();
  const open = () => change({ prospect: String(prospect.id) });
  return (
    <button type="button" className="open" onClick={open}>
      {titleOf(prospect)}
    </button>
  );
}

export const columns: readonly Column<ListedProspect>[] = [
  { id: "name", header: "Name", sortBy: titleOf, cell: (prospect) => <OpenButton prospect={prospect} /> },
  {
    id: "status",
    header: "Status",
    sortBy: ({ currentStatus }) => currentStatus?.value,
    cell: ({ currentStatus }) => <StatusMark status={currentStatus} />,
  },
  {
    id: "address",
    header: "Address",
    sortBy: ({ address }) => address?.formattedAddress ?? undefined,
    cell: ({ address }) =>
      address && (
        <span className="whole">
          {address.address1}
          <br />
          <small className="muted">
            {address.city}, {address.state} {address.zip}
          </small>
        </span>
      ),
  },
  {
    id: "assignedTo",
    header: "Assigned to",
    sortBy: ({ assignedTo }) => (assignedTo === null ? undefined : nameOf(assignedTo)),
    cell: ({ assignedTo }) => (assignedTo === null ? <span className="muted">Nobody</span> : nameOf(assignedTo)),
    minor: true,
  },
  {
    id: "phone",
    header: "Phone",
    cell: ({ phoneNumber }) => <span className="whole">{phoneNumber}</span>,
    minor: true,
  },
  {
    id: "tags",
    header: "Tags",
    cell: ({ tags }) => tags.map(({ tag }) => tag.value).join(", "),
    minor: true,
  },
  {
    id: "appointment",
    header: "Next visit",
    sortBy: ({ appointments: [next] }) => next?.startAt,
    cell: ({ appointments: [next] }) => next && timeText(next.startAt),
    minor: true,
  },
  {
    id: "createdAt",
    header: "Created",
    sortBy: ({ createdAt }) => createdAt,
    cell: ({ createdAt }) => <Time iso={createdAt} />,
    minor: true,
  },
];
