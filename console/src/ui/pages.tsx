/** The buttons that turn the pages of a table. */
import { Button } from "./button.tsx";

interface PagesProps {
  readonly page: number;
  readonly pages: number;
  readonly onChange: (page: number) => void;
}

export function Pages({ page, pages, onChange }: PagesProps) {
  return (
    <nav className="row" aria-label="Pages of the table">
      <Button disabled={page <= 1} onClick={() => onChange(page - 1)}>
        Previous
      </Button>
      <span>
        Page {page} of {pages}
      </span>
      <Button disabled={page >= pages} onClick={() => onChange(page + 1)}>
        Next
      </Button>
    </nav>
  );
}
